/* The numbers of lists of numbers, in arrays and back (dcarray/jit/loops/entry/lists.py). */

/* The largest int that a float has exactly, as have all before it. */
#define EXACT_INT (1LL << 53)

/* The element type of lists: 'd' of Python's floats, 'l' of its ints, '?' of bools, 'D' of complex numbers, and 'm' for
 * None, of floats and ints: their value, and 1 of a float; 0 with an error otherwise. */
static char
number_kind(PyObject *kind)
{
    if (kind == (PyObject *)&PyFloat_Type)
        return 'd';
    if (kind == (PyObject *)&PyLong_Type)
        return 'l';
    if (kind == (PyObject *)&PyBool_Type)
        return '?';
    if (kind == (PyObject *)&PyComplex_Type)
        return 'D';
    if (kind == Py_None)
        return 'm';
    PyErr_SetString(PyExc_TypeError, "lists of numbers are of float, int, bool or complex");
    return 0;
}

/* Get the buffer of an array with `width` elements for each of some lists; 0 with an error. */
static int
buffer_of_rows(PyObject *array, PyObject *rows, Py_ssize_t width, char letter, int flags, Py_buffer *view)
{
    Py_ssize_t size = letter == '?' ? 1 : letter == 'd' || letter == 'l' ? 8 : 16;
    if (PyObject_GetBuffer(array, view, flags | PyBUF_C_CONTIGUOUS) < 0)
        return 0;
    if (view->len == PyList_GET_SIZE(rows) * width * size)
        return 1;
    PyBuffer_Release(view);
    PyErr_SetString(PyExc_ValueError, "an array of another size than the lists");
    return 0;
}

/* Put a number into memory as its type's; 0 if it has another type, is too large, or is a NaN, which Python finds by identity. */
static int
read_number(PyObject *x, char letter, void *memory, Py_ssize_t k)
{
    int over = 0;
    long long whole;
    switch (letter) {
    case 'd':
        if (!PyFloat_CheckExact(x))
            return 0;
        ((double *)memory)[k] = PyFloat_AS_DOUBLE(x);
        return !isnan(PyFloat_AS_DOUBLE(x));
    case 'l':
        if (!PyLong_CheckExact(x))
            return 0;
        ((int64_t *)memory)[k] = PyLong_AsLongLongAndOverflow(x, &over);
        return !over;
    case '?':
        ((char *)memory)[k] = x == Py_True;
        return PyBool_Check(x);
    case 'D':
        if (!PyComplex_CheckExact(x))
            return 0;
        ((Py_complex *)memory)[k] = PyComplex_AsCComplex(x);
        return !isnan(((Py_complex *)memory)[k].real) && !isnan(((Py_complex *)memory)[k].imag);
    default:
        if (PyFloat_CheckExact(x)) {
            ((Py_complex *)memory)[k] = (Py_complex){PyFloat_AS_DOUBLE(x), 1.0};
            return !isnan(PyFloat_AS_DOUBLE(x));
        }
        if (!PyLong_CheckExact(x))
            return 0;
        whole = PyLong_AsLongLongAndOverflow(x, &over);
        ((Py_complex *)memory)[k] = (Py_complex){(double)whole, 0.0};
        return !over && -EXACT_INT <= whole && whole <= EXACT_INT;
    }
}

/* Return the number in memory. */
static PyObject *
written_number(char letter, const void *memory, Py_ssize_t k)
{
    Py_complex pair;
    switch (letter) {
    case 'd':
        return PyFloat_FromDouble(((const double *)memory)[k]);
    case 'l':
        return PyLong_FromLongLong(((const int64_t *)memory)[k]);
    case '?':
        return PyBool_FromLong(((const char *)memory)[k]);
    case 'D':
        return PyComplex_FromCComplex(((const Py_complex *)memory)[k]);
    default:
        pair = ((const Py_complex *)memory)[k];
        return pair.imag != 0.0 ? PyFloat_FromDouble(pair.real) : PyLong_FromDouble(pair.real);
    }
}

/* read_numbers(rows, kind, width, array): fill an array with the numbers of lists; False if one is of another length, or
 * has an element that is not of just this type, or an int that is too large. */
static PyObject *
read_numbers(PyObject *module, PyObject *args)
{
    PyObject *rows, *kind, *array;
    Py_ssize_t width;
    Py_buffer view;
    char letter;
    int fine = 1;
    if (!PyArg_ParseTuple(args, "O!OnO:read_numbers", &PyList_Type, &rows, &kind, &width, &array) ||
        (letter = number_kind(kind)) == 0 || !buffer_of_rows(array, rows, width, letter, PyBUF_WRITABLE, &view))
        return NULL;
    for (Py_ssize_t k = 0; fine && k < PyList_GET_SIZE(rows); k++) {
        PyObject *row = PyList_GET_ITEM(rows, k);
        fine = PyList_CheckExact(row) && PyList_GET_SIZE(row) == width;
        for (Py_ssize_t j = 0; fine && j < width; j++)
            fine = read_number(PyList_GET_ITEM(row, j), letter, view.buf, k * width + j);
    }
    PyBuffer_Release(&view);
    return PyBool_FromLong(fine);
}

/* write_numbers(rows, kind, width, array, before): put the elements of an array that another one has not into lists of this
 * length.  All others stay the objects that they are, or that another thread has put there. */
static PyObject *
write_numbers(PyObject *module, PyObject *args)
{
    PyObject *rows, *kind, *array, *old;
    Py_ssize_t width, size;
    Py_buffer view, before;
    char letter;
    int done = 1;
    if (!PyArg_ParseTuple(args, "O!OnOO:write_numbers", &PyList_Type, &rows, &kind, &width, &array, &old) ||
        (letter = number_kind(kind)) == 0 || !buffer_of_rows(array, rows, width, letter, 0, &view))
        return NULL;
    if (!buffer_of_rows(old, rows, width, letter, 0, &before)) {
        PyBuffer_Release(&view);
        return NULL;
    }
    size = view.itemsize;
    for (Py_ssize_t k = 0, n = 0; done && k < PyList_GET_SIZE(rows); k++)
        for (Py_ssize_t j = 0; done && j < width; j++, n++)
            if (memcmp((char *)view.buf + n * size, (char *)before.buf + n * size, size) != 0) {
                PyObject *x = written_number(letter, view.buf, n);
                /* which takes the reference, and refuses other lengths */
                done = x != NULL && PyList_SetItem(PyList_GET_ITEM(rows, k), j, x) == 0;
            }
    PyBuffer_Release(&view);
    PyBuffer_Release(&before);
    return done ? Py_NewRef(Py_None) : NULL;
}
