"""The digits example as an ordinary PyTorch DistributedDataParallel script (Gloo, CPU).

Needs torch only and knows nothing of who starts it: any launcher that sets RANK, WORLD_SIZE, MASTER_ADDR and
MASTER_PORT will do, and without these it trains in one process. Same network, split and settings as the C++ program;
its starting weights and the order of images are PyTorch's own.
"""
import argparse
import json
import os
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", default=str(Path(__file__).resolve().parent / "digits.csv"))
    parser.add_argument("--checkpoint", help="written by rank 0 after each epoch; training goes on from it")
    parser.add_argument("--loss-log", help="JSON lines, one for each epoch, written by rank 0")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch", type=int, default=64, help="images of one step over all ranks")
    parser.add_argument("--rate", type=float, default=0.2)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--step-delay-ms", type=float, default=0)
    parser.add_argument("--timeout", type=float, default=60, help="seconds for one exchange with the other ranks")
    return parser.parse_args()


def load_dataset(path):
    rows = [[int(number) for number in line.split(",")] for line in Path(path).read_text().splitlines()]
    data = torch.tensor(rows)
    held_out = torch.arange(len(data)) % 5 == 0
    pixels = data[:, :64].double() / 16
    return (pixels[~held_out], data[~held_out, 64]), (pixels[held_out], data[held_out, 64])


def load_checkpoint(path, model, optimizer):
    if not path or not os.path.exists(path):
        return 0
    state = torch.load(path, map_location="cpu")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["epoch"]


def save_checkpoint(path, epoch, model, optimizer):
    temporary = f"{path}.{os.getpid()}.tmp"
    torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, temporary)
    os.replace(temporary, path)


def train_epoch(arguments, model, optimizer, images, labels, epoch, rank, size, total):
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
    total.zero_()
    for begin in range(0, len(order), arguments.batch):
        step = order[begin:begin + arguments.batch]
        part = step[len(step) * rank // size:len(step) * (rank + 1) // size]
        loss = nn.functional.cross_entropy(model(images[part]), labels[part], reduction="sum")
        # DDP averages the ranks' gradients; this factor makes it the average over the images of the step.
        (loss * size / len(step)).backward()
        optimizer.step()
        optimizer.zero_grad()
        total += loss.detach()
        if arguments.step_delay_ms:
            time.sleep(arguments.step_delay_ms / 1000)
    if dist.is_initialized():
        dist.all_reduce(total)
    return total.item() / len(order)


def main():
    arguments = parse_arguments()
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(1797)
    distributed = "RANK" in os.environ
    if distributed:
        dist.init_process_group("gloo", timeout=timedelta(seconds=arguments.timeout))
    rank, size = (dist.get_rank(), dist.get_world_size()) if distributed else (0, 1)

    (images, labels), (test_images, test_labels) = load_dataset(arguments.data)
    network = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.SGD(network.parameters(), lr=arguments.rate, momentum=arguments.momentum)
    done = load_checkpoint(arguments.checkpoint, network, optimizer)
    model = DistributedDataParallel(network) if distributed else network

    # It lives until the process group is gone: PyTorch 1.13 hangs in destroy_process_group() if a thread of Gloo holds
    # the last reference to a Python tensor then (the thread waits for the interpreter, which waits for the thread).
    total = torch.zeros(())
    for epoch in range(done + 1, arguments.epochs + 1):
        loss = train_epoch(arguments, model, optimizer, images, labels, epoch, rank, size, total)
        if rank == 0:
            print(f"epoch {epoch}/{arguments.epochs} loss={loss:.6f}", flush=True)
            if arguments.loss_log:
                with open(arguments.loss_log, "a") as log:
                    log.write(json.dumps({"epoch": epoch, "loss": loss}) + "\n")
            if arguments.checkpoint:
                save_checkpoint(arguments.checkpoint, epoch, network, optimizer)

    if rank == 0:
        with torch.no_grad():
            scores = network(test_images)
        accuracy = (scores.argmax(1) == test_labels).double().mean().item()
        loss = nn.functional.cross_entropy(scores, test_labels).item()
        print(f"accuracy={accuracy:.4f} loss={loss:.9f} ranks={size}", flush=True)
    if distributed:
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
