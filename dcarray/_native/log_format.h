/* Logs without their integers: `split` of dcarray/recording/log_format.py. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* A tuple without its integers above 1, which go to `values`; anything else as it is.  `kinds` says what its items are, the
 * last letter for all that follow: d(imensions), n(umber), w(indow: offset, stride, axis for each axis), a(rgument: a
 * slot, a window and a shape), l(ist of arguments); o, a window's triple for one axis; or a
 * point where nothing is taken. */
static PyObject *
without_integers(PyObject *tuple, const char *kinds, PyObject *values)
{
    Py_ssize_t n = (Py_ssize_t)strlen(kinds);
    PyObject *left;
    if (!PyTuple_Check(tuple))
        return Py_NewRef(tuple);
    left = PyTuple_New(PyTuple_GET_SIZE(tuple));
    for (Py_ssize_t k = 0; left != NULL && k < PyTuple_GET_SIZE(tuple); k++) {
        PyObject *item = PyTuple_GET_ITEM(tuple, k);
        Py_ssize_t value;
        switch (kinds[k < n ? k : n - 1]) {
        case 'n':
            value = PyLong_AsSsize_t(item);
            if (value > 1)
                item = PyList_Append(values, item) < 0 ? NULL : Py_None;
            item = PyErr_Occurred() ? NULL : Py_NewRef(item);
            break;
        case 'd': item = without_integers(item, "n", values); break;
        case 'w': item = without_integers(item, "o", values); break;
        case 'o': item = without_integers(item, "nn.", values); break;
        case 'a': item = without_integers(item, ".wd", values); break;
        case 'l': item = without_integers(item, "a", values); break;
        default: item = Py_NewRef(item);
        }
        set_or_clear(&left, k, item);
    }
    return left;
}

/* What the fields of an entry are. */
static const char *
kinds_of(PyObject *entry)
{
    switch (PyUnicode_READ_CHAR(PyTuple_GET_ITEM(entry, 0), 0)) {
    case 'm': return "...d.wa";  /* map, op, loop, domain, slot, where, *args */
    case 'o': return "..dd.";    /* old, char, shape, strides, head */
    case 'n': return "..d.";     /* new, char, shape, head */
    case 'f': return "...d...a"; /* fold, op, loop, domain, axes, keepdims, slot, arg */
    default: return "...l.";     /* call, op, outs, args, attrs */
    }
}

/* split(log): the entries without their integers, and these in order. */
static PyObject *
split_log(PyObject *module, PyObject *log)
{
    PyObject *values = PyList_New(0), *left = NULL, *both = NULL, *integers = NULL;
    if (values == NULL)
        return NULL;
    if (PyTuple_Check(log))
        left = PyTuple_New(PyTuple_GET_SIZE(log));
    else
        PyErr_SetString(PyExc_TypeError, "a tuple of entries is wanted");
    for (Py_ssize_t k = 0; left != NULL && k < PyTuple_GET_SIZE(log); k++) {
        PyObject *entry = PyTuple_GET_ITEM(log, k);
        entry = without_integers(entry, kinds_of(entry), values);
        set_or_clear(&left, k, entry);
    }
    integers = left == NULL ? NULL : PyList_AsTuple(values);
    if (integers != NULL)
        both = PyTuple_Pack(2, left, integers);
    Py_DECREF(values);
    Py_XDECREF(left);
    Py_XDECREF(integers);
    return both;
}
