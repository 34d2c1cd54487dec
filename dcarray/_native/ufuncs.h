/* The protocol `__array_ufunc__`: calls of ufuncs and of their methods whose operands NumPy can take at once. */

/* ---- ufuncs ------------------------------------------------------------------------------------ */
/* A call with keywords, one of which is `out`, if all in it is at hand; NULL without an exception if not. */
static PyObject *
into_out(PyObject *ufunc, PyObject *p, PyObject *q, PyObject *const *values, PyObject *names)
{
    PyObject *given[FEW], *out = NULL, *r;
    Py_ssize_t inputs = q == NULL ? 1 : 2, more = PyTuple_GET_SIZE(names);
    if (inputs + more > FEW)
        return NULL;
    given[0] = p;
    given[1] = q;
    for (Py_ssize_t k = 0; k < more; k++) {
        PyObject *value = values[k];
        if (PyUnicode_Compare(PyTuple_GET_ITEM(names, k), Out) == 0) {
            if (!PyTuple_CheckExact(value) || PyTuple_GET_SIZE(value) != 1)
                return NULL;
            out = PyTuple_GET_ITEM(value, 0);
            value = Py_TYPE(out) == PlainClass ? eager_plain(out) : eager_array(out);
            if (value == NULL)
                return NULL;
        }
        else if (!PyUnicode_CheckExact(value) && !PyType_Check(value))
            return NULL;
        given[inputs + k] = value;
    }
    if (out == NULL)
        return NULL;
    if (more == 1 && by_loop_into(ufunc, p, q, given[inputs]))
        return Py_NewRef(out);
    r = PyObject_Vectorcall(ufunc, given, inputs, names);
    Py_XDECREF(r);
    return r == NULL ? NULL : Py_NewRef(out);
}

static inline int
is_text(PyObject *x, PyObject *text)
{
    return x == text || (PyUnicode_Check(x) && PyUnicode_Compare(x, text) == 0);
}

/* Record a call of a ufunc without keywords, or with `out`; it may decline. */
static PyObject *
record_ufunc(PyObject *ufunc, PyObject *const *inputs, Py_ssize_t count, PyObject *names)
{
    Py_ssize_t more = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    PyObject *name = UfuncNames == NULL || more > 1 ? NULL : PyDict_GetItemWithError(UfuncNames, ufunc), *out = NULL;
    if (more && (!is_text(PyTuple_GET_ITEM(names, 0), Out) || !PyTuple_CheckExact(inputs[count]) || PyTuple_GET_SIZE(inputs[count]) != 1))
        return NULL;
    if (more)
        out = PyTuple_GET_ITEM(inputs[count], 0);
    return name == NULL ? NULL : record_call(name, inputs, (int)count, out);
}

static int holds_numbers(PyObject *list);

/* Indices as NumPy can take them at once, or NULL. */
static inline PyObject *
indices_at_hand(PyObject *x)
{
    return PyList_CheckExact(x) && holds_numbers(x) ? x : numpy_operand(x);
}

/* A reduction, scan or outer product of what is at hand, if it is not for the recorder and the keywords hold no
 * wrapped array; NULL without an exception if not so. */
static PyObject *
method_at_hand(PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    PyObject *all[FEW + 1], **given = all + 1, *r;
    Py_ssize_t more = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    int between = is_text(args[1], Reduceat); /* with indices, which may be a plain array or a list */
    if (nargs - 2 + more > FEW)
        return NULL;
    for (Py_ssize_t k = 2; k < nargs; k++)
        if ((given[k - 2] = k > 2 && between ? indices_at_hand(args[k]) : eager_array(args[k])) == NULL)
            return NULL;
    for (Py_ssize_t k = 0; k < more; k++) {
        PyObject *value = given[nargs - 2 + k] = args[nargs + k];
        if (mentions_wrapped(value) || PyList_Check(value))
            return NULL;
    }
    /* Else the result is no longer than one of them; and what it is of small ones nobody records. */
    if (nargs == 4 && !between && (small_array(args[2]) == NULL || small_array(args[3]) == NULL)) {
        Py_ssize_t n = elements_of(given[0]) * elements_of(given[1]);
        if (n >= SmallLimit)
            return NULL;
    }
    all[0] = args[0];
    r = PyObject_VectorcallMethod(args[1], all, nargs - 1, names);
    return wrap_result(r);
}

/* Call a method in Python with the arguments of one in C. */
static PyObject *
call_method(PyObject *method, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    Py_ssize_t total = nargs + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
    PyObject *few[FEW], **all = total < FEW ? few : PyMem_New(PyObject *, total + 1), *r;
    if (all == NULL)
        return PyErr_NoMemory();
    all[0] = self;
    memcpy(all + 1, args, total * sizeof(PyObject *));
    r = PyObject_Vectorcall(method, all, nargs + 1, names);
    if (all != few)
        PyMem_Free(all);
    return r;
}

/* __array_ufunc__(ufunc, method, *inputs, **kwargs) */
static PyObject *
array_ufunc(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    PyObject *r;
    if ((nargs == 3 || nargs == 4) && is_text(args[1], Call)) {
        PyObject *p = numpy_operand(args[2]);
        PyObject *q = p == NULL || nargs == 3 ? NULL : numpy_operand(args[3]);
        if (p != NULL && (nargs == 3 || (q != NULL && !is_worth_recording(p, q, args[0] == np_matmul)))) {
            PyObject *operands[2] = {p, q};
            if (names == NULL || PyTuple_GET_SIZE(names) == 0) {
                r = q != NULL && args[0] == np_matmul ? matmul_by_loop(p, q) : NULL;
                return wrap_result(r != NULL ? r : PyObject_Vectorcall(args[0], operands, nargs - 2, NULL));
            }
            r = into_out(args[0], p, q, args + nargs, names);
            if (r != NULL || PyErr_Occurred())
                return r;
        }
        r = record_ufunc(args[0], args + 2, nargs - 2, names);
        if (r != NULL || PyErr_Occurred())
            return r;
    }
    else if ((nargs == 3 && (is_text(args[1], Reduce) || is_text(args[1], Accumulate))) ||
             (nargs == 4 && (is_text(args[1], Outer) || is_text(args[1], Reduceat)))) {
        r = method_at_hand(args, nargs, names);
        if (r != NULL || PyErr_Occurred())
            return r;
    }
    return call_method(Ufunc, self, args, nargs, names);
}

static PyObject *DeviceUfunc; /* the method of arrays on devices in Python; NULL as long as there are none */

/* `__array_ufunc__` of arrays on devices: records, or calls the method in Python. */
static PyObject *
device_ufunc(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    PyObject *r = (nargs == 3 || nargs == 4) && is_text(args[1], Call) ? record_ufunc(args[0], args + 2, nargs - 2, names) : NULL;
    return r != NULL || PyErr_Occurred() ? r : call_method(DeviceUfunc, self, args, nargs, names);
}

static PyMethodDef device_ufunc_def = {"__array_ufunc__", (PyCFunction)(void (*)(void))device_ufunc,
                                       METH_FASTCALL | METH_KEYWORDS, "NumPy's protocol for ufuncs."};
static PyMethodDef ufunc_def = {"__array_ufunc__", (PyCFunction)(void (*)(void))array_ufunc,
                                METH_FASTCALL | METH_KEYWORDS, "NumPy's protocol for ufuncs."};
