#include "plan/authority_derivation.hpp"

#include "plan/quoted.hpp"

namespace ddl::plan {

namespace {

using std::chrono_literals::operator""s;

constexpr double kLongestDeadline = 365.0 * 86'400;
constexpr Duration kShortestEtcdLease = 2s;  // etcd grants none that is shorter

void plan_lease(Asked& asked, const Meeting& meeting, RendezvousPlan& rendezvous) {
    rendezvous.lease_timeout = rendezvous.kind == Rendezvous::kLocal ? Duration::zero() : Duration(5s);
    if (!meeting.conf.lease_timeout) {
        return;
    }
    if (rendezvous.kind == Rendezvous::kLocal) {
        return asked.note_no_effect(Flag::kRdzvConf, "lease_timeout");
    }
    rendezvous.lease_timeout = *meeting.conf.lease_timeout;
    if (rendezvous.kind == Rendezvous::kEtcd && rendezvous.lease_timeout < kShortestEtcdLease) {
        asked.refuse(Flag::kRdzvConf, "lease_timeout is below 2 s, the shortest lease of etcd; try lease_timeout=2");
    }
}

void plan_takeover(Asked& asked, const Meeting& meeting, RendezvousPlan& rendezvous) {
    const bool by_vote = rendezvous.kind == Rendezvous::kDynamic && rendezvous.max_nodes > 1;
    rendezvous.takeover = by_vote && meeting.conf.takeover.value_or(true);
    if (!meeting.conf.takeover.value_or(false) || by_vote) {
        return;
    }
    if (rendezvous.kind == Rendezvous::kStatic) {
        return asked.refuse(Flag::kRdzvConf,
                            "takeover=majority, but node rank 0 alone hosts a static rendezvous; try --rdzv-backend "
                            "c10d with --rdzv-endpoint, or leave takeover out");
    }
    asked.note_no_effect(Flag::kRdzvConf, "takeover");
}

void plan_scale_up(Asked& asked, RendezvousPlan& rendezvous) {
    rendezvous.scale_up = asked.value(Flag::kScaleUp, ScaleUp::kNow, [](std::string_view text) -> Result<ScaleUp> {
        if (text == "now") {
            return ScaleUp::kNow;
        }
        if (text == "at-checkpoint") {
            return ScaleUp::kAtCheckpoint;
        }
        return text == "never" ? Result<ScaleUp>(ScaleUp::kNever)
                               : fail(quoted(text) + " is not one of now, at-checkpoint, never");
    });
    rendezvous.scale_up_deadline = asked.value(Flag::kScaleUpDeadline, Duration(1800s), [](std::string_view text) {
        return parse_span(text, 1, kLongestDeadline);
    });
    const bool may_grow = rendezvous.kind == Rendezvous::kDynamic || rendezvous.kind == Rendezvous::kEtcd;
    if (!may_grow) {
        asked.note_no_effect(Flag::kScaleUp);
    }
    if (!may_grow || rendezvous.scale_up != ScaleUp::kAtCheckpoint) {
        asked.note_no_effect(Flag::kScaleUpDeadline);
    }
}

void plan_password(Asked& asked, const HostFacts& host, LaunchPlan& plan) {
    EtcdPlan& etcd = plan.rendezvous.etcd;
    const Lookup variable = lookup(host.environment, kEtcdPasswordVariable);
    if (!etcd.password.empty() && asked.typed(Flag::kRdzvConf)) {
        plan.notes.push_back(spelling(Flag::kRdzvConf) + ": every user of this node can see the password; " +
                             kEtcdPasswordVariable + " in the environment hides it");
    }
    if (etcd.password.empty() && !etcd.user.empty()) {
        etcd.password = variable.value;
    }
    if (etcd.password.empty() != etcd.user.empty()) {
        asked.refuse(Flag::kRdzvConf, etcd.user.empty()
                                          ? std::string("password without user; add user=NAME")
                                          : "user without a password; set " + std::string(kEtcdPasswordVariable));
    }
}

void plan_etcd(Asked& asked, const Meeting& meeting, const HostFacts& host, LaunchPlan& plan) {
    const EtcdConf& conf = meeting.conf.etcd;
    const bool has_certificates = !conf.ca_file.empty() || !conf.certificate_file.empty() || !conf.key_file.empty();
    plan.rendezvous.etcd = {conf.tls.value_or(has_certificates),
                            conf.user,
                            conf.password,
                            conf.ca_file,
                            conf.certificate_file,
                            conf.key_file};
    if (!plan.rendezvous.job_id_typed) {
        asked.refuse(Flag::kRdzvId,
                     "is needed with --rdzv-backend etcd, which other jobs may use, too; add "
                     "--rdzv-id NAME, the same on all nodes of this job and of no other");
    }
    if (has_certificates && !plan.rendezvous.etcd.tls) {
        asked.refuse(Flag::kRdzvConf, "protocol=http uses no certificates; try protocol=https, or leave them out");
    }
    if (conf.certificate_file.empty() != conf.key_file.empty()) {
        asked.refuse(Flag::kRdzvConf, "cert and key belong together; add " +
                                          std::string(conf.key_file.empty() ? "key=FILE" : "cert=FILE"));
    }
    if (asked.text(Flag::kRdzvBackend) == "etcd-v2") {
        plan.notes.push_back(asked.origin(Flag::kRdzvBackend) +
                             ": etcd-v2 is taken for etcd: its version 3 API is used");
    }
    if (meeting.conf.is_host) {
        asked.note_no_effect(Flag::kRdzvConf, "is_host");
    }
    plan_password(asked, host, plan);
}

}  // namespace

void derive_authority(Asked& asked, const Meeting& meeting, const HostFacts& host, LaunchPlan& plan) {
    plan_lease(asked, meeting, plan.rendezvous);
    plan_takeover(asked, meeting, plan.rendezvous);
    plan_scale_up(asked, plan.rendezvous);
    if (plan.rendezvous.kind == Rendezvous::kEtcd) {
        return plan_etcd(asked, meeting, host, plan);
    }
    for (const std::string& key : meeting.conf.of_etcd) {
        asked.note_no_effect(Flag::kRdzvConf, key);
    }
}

}  // namespace ddl::plan
