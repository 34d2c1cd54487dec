/* Logs without their integers, as `split` of forms.py. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Sizes, strides or offsets: what is above 1 goes to `values`, and leaves None. */
static PyObject *
take_integers(PyObject *dims, Py_ssize_t count, PyObject *values)
{
    PyObject *left;
    Py_ssize_t n;
    if (dims == Py_None)
        return Py_NewRef(dims);
    n = PyTuple_GET_SIZE(dims);
    left = PyTuple_New(n);
    for (Py_ssize_t k = 0; left != NULL && k < n; k++) {
        PyObject *item = PyTuple_GET_ITEM(dims, k);
        if (k < count) {
            Py_ssize_t value = PyLong_AsSsize_t(item);
            if (value == -1 && PyErr_Occurred())
                Py_CLEAR(left);
            else if (value > 1) {
                if (PyList_Append(values, item) < 0)
                    Py_CLEAR(left);
                item = Py_None;
            }
        }
        if (left != NULL)
            PyTuple_SET_ITEM(left, k, Py_NewRef(item));
    }
    return left;
}

/* An index: None, or (offset, stride, axis) for each axis. */
static PyObject *
take_index(PyObject *index, PyObject *values)
{
    PyObject *left;
    Py_ssize_t n;
    if (index == Py_None)
        return Py_NewRef(index);
    n = PyTuple_GET_SIZE(index);
    left = PyTuple_New(n);
    for (Py_ssize_t k = 0; left != NULL && k < n; k++) {
        PyObject *part = take_integers(PyTuple_GET_ITEM(index, k), 2, values);
        if (part == NULL)
            Py_CLEAR(left);
        else
            PyTuple_SET_ITEM(left, k, part);
    }
    return left;
}

/* An argument: the number of a scalar, or (slot, index, shape). */
static PyObject *
take_argument(PyObject *argument, PyObject *values)
{
    PyObject *index, *shape, *left = NULL;
    if (!PyTuple_Check(argument))
        return Py_NewRef(argument);
    index = take_index(PyTuple_GET_ITEM(argument, 1), values);
    if (index == NULL)
        return NULL;
    shape = take_integers(PyTuple_GET_ITEM(argument, 2), PY_SSIZE_T_MAX, values);
    if (shape != NULL)
        left = PyTuple_Pack(3, PyTuple_GET_ITEM(argument, 0), index, shape);
    Py_DECREF(index);
    Py_XDECREF(shape);
    return left;
}

static PyObject *
take_arguments(PyObject *arguments, PyObject *values)
{
    Py_ssize_t n = PyTuple_GET_SIZE(arguments);
    PyObject *left = PyTuple_New(n);
    for (Py_ssize_t k = 0; left != NULL && k < n; k++) {
        PyObject *argument = take_argument(PyTuple_GET_ITEM(arguments, k), values);
        if (argument == NULL)
            Py_CLEAR(left);
        else
            PyTuple_SET_ITEM(left, k, argument);
    }
    return left;
}

/* What field `k` of an entry holds, by the kind of the entry: plain, d(imensions), i(ndex), a(rgument), or
 * a tuple (l) of arguments. */
static char
field(const char *fields, Py_ssize_t k)
{
    Py_ssize_t n = (Py_ssize_t)strlen(fields);
    return fields[k < n ? k : n - 1];
}

static PyObject *
take_entry(PyObject *entry, PyObject *values)
{
    const char *fields;
    PyObject *left, *kind = PyTuple_GET_ITEM(entry, 0);
    Py_ssize_t n = PyTuple_GET_SIZE(entry);
    switch (PyUnicode_READ_CHAR(kind, 0)) {
    case 'm': fields = "...d.ia"; break; /* map, op, loop, domain, slot, where, *args */
    case 'o': fields = "..dd."; break;   /* old, char, shape, strides, head */
    case 'n': fields = "..d."; break;    /* new, char, shape, head */
    case 'f': fields = "...d...a"; break; /* fold, op, loop, domain, axes, keepdims, slot, arg */
    default: fields = "...l."; break;    /* call, op, outs, args, attrs */
    }
    left = PyTuple_New(n);
    for (Py_ssize_t k = 0; left != NULL && k < n; k++) {
        PyObject *item = PyTuple_GET_ITEM(entry, k), *taken;
        switch (field(fields, k)) {
        case 'd': taken = take_integers(item, PY_SSIZE_T_MAX, values); break;
        case 'i': taken = take_index(item, values); break;
        case 'a': taken = take_argument(item, values); break;
        case 'l': taken = take_arguments(item, values); break;
        default: taken = Py_NewRef(item); break;
        }
        if (taken == NULL)
            Py_CLEAR(left);
        else
            PyTuple_SET_ITEM(left, k, taken);
    }
    return left;
}

static PyObject *
split_log(PyObject *module, PyObject *log)
{
    PyObject *values = PyList_New(0), *left = NULL, *both = NULL, *integers = NULL;
    Py_ssize_t n;
    if (values == NULL)
        return NULL;
    if (!PyTuple_Check(log)) {
        PyErr_SetString(PyExc_TypeError, "a tuple of entries is wanted");
        goto done;
    }
    n = PyTuple_GET_SIZE(log);
    left = PyTuple_New(n);
    for (Py_ssize_t k = 0; left != NULL && k < n; k++) {
        PyObject *entry = take_entry(PyTuple_GET_ITEM(log, k), values);
        if (entry == NULL)
            Py_CLEAR(left);
        else
            PyTuple_SET_ITEM(left, k, entry);
    }
    integers = left == NULL ? NULL : PyList_AsTuple(values);
    if (integers != NULL)
        both = PyTuple_Pack(2, left, integers);
done:
    Py_DECREF(values);
    Py_XDECREF(left);
    Py_XDECREF(integers);
    return both;
}
