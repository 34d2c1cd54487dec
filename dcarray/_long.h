/* NumPy's inner loops over large arrays, without what a ufunc does before and after: where arrays have pushed that out
 * of the near cache it takes a microsecond.  Included where what it uses is declared. */

/* Elements: beside what more of them take, what a ufunc does before and after is nothing. */
enum { LARGEST = 1 << 20 };

/* What the loop makes of a large array; NULL, without an exception, where the ufunc is to be called. */
static PyObject *
looped_long(Loop *loop, Array *like, Py_ssize_t n, char **pointers, Py_ssize_t *strides, PyObject *p, PyObject *q)
{
    int result = loop->second ? 2 : 1, raised;
    PyObject *r = NewArray(Plain, Py_NewRef(loop->result), like->ndim, like->shape, NULL, NULL, 0, NULL);
    PyThreadState *state;
    if (r == NULL) {
        PyErr_Clear();
        return NULL;
    }
    pointers[result] = ((Array *)r)->data;
    strides[result] = Known[((Descr *)loop->result)->type & 127].width;
    Py_INCREF(p);
    Py_XINCREF(q);
    if (fetestexcept(FLAGS))
        feclearexcept(FLAGS);
    state = PyEval_SaveThread();
    loop->code(pointers, &n, strides, loop->data);
    raised = fetestexcept(FLAGS);
    PyEval_RestoreThread(state);
    Py_DECREF(p);
    Py_XDECREF(q);
    if (!raised && !PyErr_Occurred())
        return r;
    PyErr_Clear();
    loop->rest = REST;
    Py_DECREF(r);
    return NULL;
}
