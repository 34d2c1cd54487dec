/* The numbers of lists of numbers, in arrays and back (dcarray/jit/loops/entry/lists.py). */

/* The element type of lists: 'd' of Python's floats, 'l' of its ints; 0 with an error otherwise. */
static char
number_kind(PyObject *kind)
{
    if (kind == (PyObject *)&PyFloat_Type)
        return 'd';
    if (kind == (PyObject *)&PyLong_Type)
        return 'l';
    PyErr_SetString(PyExc_TypeError, "lists of numbers are of float or int");
    return 0;
}

/* Get the buffer of an array with `width` 8-byte elements for each of some lists; 0 with an error. */
static int
buffer_of_rows(PyObject *array, PyObject *rows, Py_ssize_t width, int flags, Py_buffer *view)
{
    if (PyObject_GetBuffer(array, view, flags | PyBUF_C_CONTIGUOUS) < 0)
        return 0;
    if (view->len == PyList_GET_SIZE(rows) * width * 8)
        return 1;
    PyBuffer_Release(view);
    PyErr_SetString(PyExc_ValueError, "an array of another size than the lists");
    return 0;
}

/* read_numbers(rows, kind, width, array): fill an array with the numbers of lists; False if one is of another length, or
 * has an element that is not of just this type, or an int of more than 64 bits. */
static PyObject *
read_numbers(PyObject *module, PyObject *args)
{
    PyObject *rows, *kind, *array;
    Py_ssize_t width;
    Py_buffer view;
    char letter;
    int fine = 1;
    if (!PyArg_ParseTuple(args, "O!OnO:read_numbers", &PyList_Type, &rows, &kind, &width, &array) ||
        (letter = number_kind(kind)) == 0 || !buffer_of_rows(array, rows, width, PyBUF_WRITABLE, &view))
        return NULL;
    for (Py_ssize_t k = 0; fine && k < PyList_GET_SIZE(rows); k++) {
        PyObject *row = PyList_GET_ITEM(rows, k);
        fine = PyList_CheckExact(row) && PyList_GET_SIZE(row) == width;
        for (Py_ssize_t j = 0; fine && j < width; j++) {
            PyObject *x = PyList_GET_ITEM(row, j);
            fine = (PyObject *)Py_TYPE(x) == kind;
            if (fine && letter == 'd')
                ((double *)view.buf)[k * width + j] = PyFloat_AS_DOUBLE(x);
            else if (fine) {
                int over;
                ((int64_t *)view.buf)[k * width + j] = PyLong_AsLongLongAndOverflow(x, &over);
                fine = !over;
            }
        }
    }
    PyBuffer_Release(&view);
    return PyBool_FromLong(fine);
}

/* write_numbers(rows, kind, width, array): put the elements of an array into lists of this length. */
static PyObject *
write_numbers(PyObject *module, PyObject *args)
{
    PyObject *rows, *kind, *array;
    Py_ssize_t width;
    Py_buffer view;
    char letter;
    if (!PyArg_ParseTuple(args, "O!OnO:write_numbers", &PyList_Type, &rows, &kind, &width, &array) ||
        (letter = number_kind(kind)) == 0 || !buffer_of_rows(array, rows, width, 0, &view))
        return NULL;
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(rows); k++) {
        PyObject *row = PyList_GET_ITEM(rows, k);
        for (Py_ssize_t j = 0; j < width; j++) {
            PyObject *x = letter == 'd' ? PyFloat_FromDouble(((double *)view.buf)[k * width + j])
                                        : PyLong_FromLongLong(((int64_t *)view.buf)[k * width + j]);
            if (x == NULL || PyList_SetItem(row, j, x) < 0) { /* which takes the reference, and refuses other lengths */
                PyBuffer_Release(&view);
                return NULL;
            }
        }
    }
    PyBuffer_Release(&view);
    Py_RETURN_NONE;
}
