"""From regions to running code: schedules, kernels, targets, caches."""

if __name__ != "dcarray.lowering":
    raise ImportError("this folder is the package 'dcarray.lowering': import it by that name")
