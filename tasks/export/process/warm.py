"""What makes exports faster and leaves their bytes as they are."""


def compute_patterns() -> None:
    """Compute the patterns that XNNPACK's passes look for, once for all children of this process: 4 s of every export.

    Starts no thread, so that a fork of this process stays safe.
    """
    import torch
    import tqdm

    # A child that was forked after torch has started threads waits for them for ever.
    threads, torch_threads = tqdm.tqdm.monitor_interval, torch.get_num_threads()
    tqdm.tqdm.monitor_interval = 0
    torch.set_num_threads(1)
    try:
        from executorch.backends.xnnpack.partition.graphs import bilinear_2d, sdpa

        bilinear_2d.get_graphs_dict()
        sdpa.get_graphs()
    finally:
        tqdm.tqdm.monitor_interval = threads
        torch.set_num_threads(torch_threads)


def share_node_sources() -> None:
    """Let copies of a graph share the descriptions of where a node came from: a fifth of an export's time.

    torch copies the whole history of a node in every pass, and never changes a description once it is made.
    """
    from torch.fx.traceback import NodeSource

    def same(source: NodeSource, _memo: object) -> NodeSource:
        return source

    NodeSource.__deepcopy__ = same
