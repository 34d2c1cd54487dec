"""The region IR: nodes, operations, interpreter, analyses and passes.

``nodes`` is the language, ``ops`` its vocabulary, ``interp`` its meaning; ``passes`` rewrites it.
"""

if __name__ != "dcarray.ir":
    raise ImportError("this folder is the package 'dcarray.ir': import it by that name")
