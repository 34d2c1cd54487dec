"""One array over many ranks: layouts, communication plans, MPI."""

if __name__ != "dcarray.comm":
    raise ImportError("this folder is the package 'dcarray.comm': import it by that name")
