/* Parts of windows that slices select, as in window.py: an index is None (all of a store) or has one
 * (offset, stride, axis) for each axis of the store. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* (offset, stride, axis), which becomes that of a part that begins `start` further. */
static PyObject *
shift_part(PyObject *part, Py_ssize_t start)
{
    PyObject *triple;
    Py_ssize_t offset, stride;
    if (start == 0)
        return Py_NewRef(part);
    offset = PyLong_AsSsize_t(PyTuple_GET_ITEM(part, 0));
    stride = PyLong_AsSsize_t(PyTuple_GET_ITEM(part, 1));
    if (PyErr_Occurred())
        return NULL;
    triple = PyTuple_New(3);
    if (triple == NULL)
        return NULL;
    PyTuple_SET_ITEM(triple, 0, PyLong_FromSsize_t(offset + stride * start));
    PyTuple_SET_ITEM(triple, 1, Py_NewRef(PyTuple_GET_ITEM(part, 1)));
    PyTuple_SET_ITEM(triple, 2, Py_NewRef(PyTuple_GET_ITEM(part, 2)));
    return triple;
}

/* The shape and index of the part of a window that `given` slices select.  Gives the number of its elements,
 * 0 if these are no slices by steps of 1 or nothing is selected, and -1 with an exception. */
static Py_ssize_t
select_part(PyObject *shape, PyObject *index, PyObject **slices, Py_ssize_t given, PyObject **part_shape,
            PyObject **part_index)
{
    Py_ssize_t starts[32], n = PyTuple_GET_SIZE(shape), elements = 1;
    PyObject *extents, *parts = NULL;
    if (n > 32 || given > n)
        return 0;
    for (Py_ssize_t k = 0; k < given; k++)
        if (!PySlice_Check(slices[k]))
            return 0;
    for (Py_ssize_t k = given; k < n; k++)
        if (PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, k)) <= 0)
            return PyErr_Occurred() ? -1 : 0;
    extents = PyTuple_New(n);
    if (extents == NULL)
        return -1;
    for (Py_ssize_t k = 0; k < n; k++) {
        Py_ssize_t stop, step, size, whole = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, k));
        PyObject *extent;
        if (k >= given) {
            starts[k] = 0;
            elements *= whole;
            PyTuple_SET_ITEM(extents, k, Py_NewRef(PyTuple_GET_ITEM(shape, k)));
            continue;
        }
        if ((whole == -1 && PyErr_Occurred()) || PySlice_Unpack(slices[k], starts + k, &stop, &step) < 0)
            goto failed;
        size = PySlice_AdjustIndices(whole, starts + k, &stop, step);
        if (step != 1 || size <= 0) {
            Py_DECREF(extents);
            return 0;
        }
        elements *= size;
        extent = PyLong_FromSsize_t(size);
        if (extent == NULL)
            goto failed;
        PyTuple_SET_ITEM(extents, k, extent);
    }
    parts = PyTuple_New(index == Py_None ? n : PyTuple_GET_SIZE(index));
    if (parts == NULL)
        goto failed;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(parts); k++) {
        PyObject *part = index == Py_None ? Py_BuildValue("nin", starts[k], 1, k) : NULL;
        if (index != Py_None) {
            PyObject *old = PyTuple_GET_ITEM(index, k), *axis = PyTuple_GET_ITEM(old, 2);
            part = shift_part(old, axis == Py_None ? 0 : starts[PyLong_AsSsize_t(axis)]);
        }
        if (part == NULL)
            goto failed;
        PyTuple_SET_ITEM(parts, k, part);
    }
    *part_shape = extents;
    *part_index = parts;
    return elements;
failed:
    Py_DECREF(extents);
    Py_XDECREF(parts);
    return -1;
}

/* As `sliced` of window.py. */
static PyObject *
slice_window(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *shape, *index, *window;
    Py_ssize_t elements;
    if (nargs != 3 || !PyTuple_Check(args[0]) || !PyTuple_Check(args[2]) ||
        (args[1] != Py_None && !PyTuple_Check(args[1]))) {
        PyErr_SetString(PyExc_TypeError, "a shape, an index and a tuple are wanted");
        return NULL;
    }
    elements = select_part(args[0], args[1], PySequence_Fast_ITEMS(args[2]), PyTuple_GET_SIZE(args[2]), &shape,
                           &index);
    if (elements <= 0)
        return elements < 0 ? NULL : Py_NewRef(Py_None);
    window = PyTuple_Pack(2, shape, index);
    Py_DECREF(shape);
    Py_DECREF(index);
    return window;
}

/* index_window(shape, index, key): as `getitem` of window.py for a key of integers, slices and None within bounds;
 * None for any other. */
static PyObject *
index_window(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    enum { MOST = 32 };
    Py_ssize_t starts[MOST], steps[MOST], news[MOST], extents[2 * MOST], n, given, axis = 0, ndim = 0;
    PyObject *const *keys, *shape, *index, *parts, *window = NULL;
    if (nargs != 3 || !PyTuple_Check(args[0]) || !PyTuple_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "a shape, an index and a key are wanted");
        return NULL;
    }
    n = PyTuple_GET_SIZE(args[0]);
    keys = PyTuple_CheckExact(args[2]) ? PySequence_Fast_ITEMS(args[2]) : args + 2;
    given = PyTuple_CheckExact(args[2]) ? PyTuple_GET_SIZE(args[2]) : 1;
    if (n > MOST || given > MOST)
        Py_RETURN_NONE;
    for (Py_ssize_t k = 0; k < given || axis < n; k++) {
        PyObject *key = k < given ? keys[k] : NULL;
        Py_ssize_t whole, stop;
        if (key == Py_None) {
            extents[ndim++] = 1;
            continue;
        }
        if (axis == n)
            Py_RETURN_NONE;
        whole = PyLong_AsSsize_t(PyTuple_GET_ITEM(args[0], axis));
        starts[axis] = 0;
        steps[axis] = 1;
        news[axis] = ndim;
        if (key == NULL)
            extents[ndim++] = whole;
        else if (PySlice_Check(key)) {
            if (PySlice_Unpack(key, starts + axis, &stop, steps + axis) < 0)
                return NULL;
            extents[ndim] = PySlice_AdjustIndices(whole, starts + axis, &stop, steps[axis]);
            if (extents[ndim++] == 0)
                starts[axis] = 0;
        }
        else if (PyLong_CheckExact(key)) {
            Py_ssize_t at = PyLong_AsSsize_t(key);
            if (at == -1 && PyErr_Occurred())
                PyErr_Clear();
            else if (at < whole && at >= -whole) {
                starts[axis] = at < 0 ? at + whole : at;
                news[axis++] = -1;
                continue;
            }
            Py_RETURN_NONE;
        }
        else
            Py_RETURN_NONE;
        axis++;
    }
    index = args[1];
    shape = PyTuple_New(ndim);
    parts = PyTuple_New(PyTuple_GET_SIZE(index));
    for (Py_ssize_t k = 0; shape != NULL && k < ndim; k++)
        PyTuple_SET_ITEM(shape, k, PyLong_FromSsize_t(extents[k]));
    for (Py_ssize_t k = 0; parts != NULL && k < PyTuple_GET_SIZE(index); k++) {
        PyObject *old = PyTuple_GET_ITEM(index, k), *part;
        if (PyTuple_GET_ITEM(old, 2) == Py_None)
            part = Py_NewRef(old);
        else {
            Py_ssize_t a = PyLong_AsSsize_t(PyTuple_GET_ITEM(old, 2));
            Py_ssize_t offset = PyLong_AsSsize_t(PyTuple_GET_ITEM(old, 0));
            Py_ssize_t stride = PyLong_AsSsize_t(PyTuple_GET_ITEM(old, 1));
            offset += stride * starts[a];
            part = news[a] < 0 ? Py_BuildValue("niO", offset, 0, Py_None)
                               : Py_BuildValue("nnn", offset, stride * steps[a], news[a]);
        }
        PyTuple_SET_ITEM(parts, k, part);
    }
    if (shape != NULL && parts != NULL && !PyErr_Occurred())
        window = PyTuple_Pack(2, shape, parts);
    Py_XDECREF(shape);
    Py_XDECREF(parts);
    return window;
}
