"""What this machine and process can and do use."""
import resource


def peak_rss_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def matmul_peak_flops_per_second(size=1024, repeats=8):
    """Best of a few square fp32 products, on the threads torch has."""
    import time

    import torch

    left, right, product = (torch.randn(size, size) for _ in range(3))
    best = 0.0
    for _ in range(repeats):
        started = time.perf_counter()
        torch.mm(left, right, out=product)
        best = max(best, 2 * size**3 / (time.perf_counter() - started))
    return best
