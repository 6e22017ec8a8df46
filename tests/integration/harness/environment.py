"""The environment of programs under test: the caller's, without what would change the outcome."""
import os

# Variables that would change what is tested when the caller's shell has them.
FOREIGN = ("PET_", "DDL_", "DDLAUNCH_", "TORCHELASTIC_", "SLURM_", "OMPI_", "PMI", "OMP_NUM", "GLOO_", "MASTER_",
           "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "TORCH_")


def clean_environment(**more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**kept, **more}
