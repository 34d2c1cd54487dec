/* Calls of NumPy's ufuncs by their inner loops at once (dcarray/core/floor.py).
 *
 * Python calls a ufunc, also for an operator, by the function in its field `vectorcall`, which is replaced.  What NumPy does before
 * and after a loop takes longer than a loop over some hundred elements.  And for windows of large arrays NumPy calls the loop for
 * one row after the other, so that no loop is long enough for several threads; here these share the rows. */

static vectorcallfunc CallUfunc; /* NumPy's own function */
static PyObject *Maximum, *Minimum;
static int (*GiveErrors)(const char *, int); /* PyUFunc_GiveFloatingpointErrors */
enum { API_GIVE_ERRORS = 46, LEAST_ROW = 32 };

typedef struct {
    SharedLoop *loop;
    char *data[3];
    const Py_ssize_t *strides[3], *shape; /* strides are NULL for a number */
    int operands, ndim, flags;
    Py_ssize_t rows, many, next; /* how many in each piece, and the first piece that nobody has begun */
} RowsRun;

static void *
do_rows(void *what)
{
    RowsRun *r = what;
    Py_ssize_t steps[3], piece, done = 0, count = r->shape[r->ndim - 1];
    long begun = nanoseconds();
    for (int k = 0; k < r->operands; k++)
        steps[k] = r->strides[k] == NULL ? 0 : r->strides[k][r->ndim - 1];
    feclearexcept(FE_ALL_EXCEPT);
    while ((piece = next_piece(&r->next, 1)) * r->many < r->rows)
        for (Py_ssize_t row = piece * r->many; row < r->rows && row < (piece + 1) * r->many; row++) {
            char *at[3] = {r->data[0], r->data[1], r->data[2]};
            Py_ssize_t left = row;
            for (int axis = r->ndim - 2; axis >= 0; axis--) {
                for (int k = 0; k < r->operands; k++)
                    at[k] += r->strides[k] == NULL ? 0 : left % r->shape[axis] * r->strides[k][axis];
                left /= r->shape[axis];
            }
            r->loop->code(at, &count, steps, r->loop->data);
            done += count;
        }
    if (done > 0)
        note_cost(r->loop, nanoseconds() - begun, done);
    note_flags(&r->flags, fetestexcept(FLAGS));
    return NULL;
}

/* Do the elements of an array lie in C's order, with or without gaps, so that none lies where another one does? */
static int
are_in_order(Array *a)
{
    Py_ssize_t extent = Known[a->dtype->type & 127].width;
    for (int axis = a->ndim - 1; axis >= 0; axis--) {
        if (a->strides[axis] < extent)
            return 0;
        extent = a->strides[axis] * a->shape[axis];
    }
    return 1;
}

static int
shares_memory(Array *a, Array *b)
{
    return a->data < b->data + b->strides[0] * b->shape[0] && b->data < a->data + a->strides[0] * a->shape[0];
}

/* A call on windows of large arrays by several threads; NULL, without an exception, if NumPy is to do it. */
static PyObject *
call_by_rows(PyObject *ufunc, PyObject *p, PyObject *q, PyObject *into)
{
    PyObject *operands[3] = {p, q, into};
    int count = q == NULL ? 1 : 2, gaps = 0;
    Array *like = (Array *)(Py_TYPE(p) == PlainClass ? p : q), *out = (Array *)into;
    char number[16];
    if (q == NULL)
        operands[1] = into;
    if (like == NULL || Py_TYPE(like) != PlainClass || like->ndim < 2 || like->ndim > MOST_AXES || SharingThreads < 2 ||
        (into != NULL && (Py_TYPE(into) != PlainClass || out->ndim != like->ndim)))
        return NULL;
    RowsRun r = {.operands = count + 1, .ndim = like->ndim, .shape = like->shape};
    Py_ssize_t n = elements_of((PyObject *)like), row = like->shape[like->ndim - 1];
    if (n < LEAST_SHARED || row < LEAST_ROW)
        return NULL;
    for (int k = 0; k < count + (into != NULL); k++) {
        Array *one = (Array *)operands[k];
        if (Py_TYPE(one) != PlainClass && k < count)
            continue; /* a number, perhaps */
        if (!is_known(one->dtype) || !(one->flags & ALIGNED) || one->ndim != like->ndim ||
            memcmp(one->shape, like->shape, like->ndim * sizeof(Py_ssize_t)) != 0 || !are_in_order(one))
            return NULL;
        r.data[k] = one->data;
        r.strides[k] = one->strides;
        gaps |= !(one->flags & IN_C_ORDER);
        if (k < count && into != NULL && shares_memory(one, out) &&
            (one->data != out->data || one->dtype != out->dtype || memcmp(one->strides, out->strides, one->ndim * sizeof(Py_ssize_t)) != 0))
            return NULL;
    }
    if (!gaps || (into != NULL && (out->flags & (WRITEABLE | WARNS)) != WRITEABLE))
        return NULL;
    Loop *loop = loop_of(ufunc, (r.data[0] ? (Array *)p : like)->dtype->type, q == NULL ? 0 : (r.data[1] ? (Array *)q : like)->dtype->type);
    if (loop == NULL || loop->code != shared_loop || (into != NULL && loop->result != (PyObject *)out->dtype))
        return NULL;
    for (int k = 0; k < count; k++)
        if (r.data[k] == NULL && !store_number(operands[k], like->dtype, r.data[k] = number))
            return NULL;
    r.loop = loop->data;
    if (r.loop->cost != 0 && r.loop->cost * n < LEAST_GAIN)
        return NULL;
    if (into == NULL && (into = NewArray(PlainClass, Py_NewRef(loop->result), like->ndim, like->shape, NULL, NULL, 0, NULL)) == NULL) {
        PyErr_Clear();
        return NULL;
    }
    else if (out != NULL)
        Py_INCREF(into);
    r.data[count] = ((Array *)into)->data;
    r.strides[count] = ((Array *)into)->strides;
    r.rows = n / row;
    r.many = PIECE / row > 0 ? PIECE / row : 1;
    Py_INCREF(p);
    Py_XINCREF(q);
    PyThreadState *state = PyEval_SaveThread();
    if (r.loop->cost == 0)
        do_rows(&r);
    else {
        Py_ssize_t pieces = (r.rows + r.many - 1) / r.many;
        share_work(do_rows, &r, pieces < SharingThreads ? (int)pieces : SharingThreads);
        SharedRuns++;
    }
    clear_flags();
    PyEval_RestoreThread(state);
    Py_DECREF(p);
    Py_XDECREF(q);
    if (r.flags && GiveErrors(((Tables *)ufunc)->name, numpy_bits(r.flags)) < 0)
        Py_CLEAR(into);
    return into;
}

static PyObject *
call_by_loop(PyObject *ufunc, PyObject *const *args, size_t flagged, PyObject *names)
{
    Py_ssize_t count = PyVectorcall_NARGS(flagged), inputs = ((Tables *)ufunc)->nin;
    if (names != NULL && PyTuple_GET_SIZE(names) == 1 && count == inputs && PyTuple_GET_ITEM(names, 0) == Out)
        count++; /* its value follows the others */
    else if (names != NULL || (count > inputs && (ufunc == Maximum || ufunc == Minimum))) /* where NumPy says how to give `out` */
        inputs = 3;
    if (inputs <= 2 && (count == inputs || count == inputs + 1)) {
        PyObject *q = inputs == 2 ? args[1] : NULL, *into = count == inputs ? NULL : args[inputs], *made = NULL;
        if (into == NULL)
            made = by_small_loop(ufunc, args[0], q);
        else if (by_loop_into(ufunc, args[0], q, into))
            made = Py_NewRef(into);
        if (made == NULL && GiveErrors != NULL)
            made = call_by_rows(ufunc, args[0], q, into);
        if (made != NULL || PyErr_Occurred())
            return made;
    }
    return CallUfunc(ufunc, args, flagged, names);
}

/* call_ufuncs_by_loops(api, ufuncs): from now on Python calls these ufuncs (a dict) so; `api` is NumPy's table of functions for ufuncs.
 * How many they are: none if NumPy's are other ones than this is made for. */
static PyObject *
call_ufuncs_by_loops(PyObject *module, PyObject *args)
{
    PyObject *name, *ufunc, *capsule, *ufuncs;
    Py_ssize_t at = 0, place;
    long many = 0;
    void **api;
    if (!PyArg_ParseTuple(args, "OO!", &capsule, &PyDict_Type, &ufuncs) || (api = PyCapsule_GetPointer(capsule, NULL)) == NULL)
        return NULL;
    if (NewArray == NULL)
        return PyLong_FromLong(0);
    Maximum = PyDict_GetItemString(ufuncs, "maximum");
    Minimum = PyDict_GetItemString(ufuncs, "minimum");
    GiveErrors = (int (*)(const char *, int))api[API_GIVE_ERRORS];
    while (PyDict_Next(ufuncs, &at, &name, &ufunc)) {
        vectorcallfunc *field = NULL;
        if (PyType_HasFeature(Py_TYPE(ufunc), Py_TPFLAGS_HAVE_VECTORCALL) && (place = Py_TYPE(ufunc)->tp_vectorcall_offset) > 0)
            field = (vectorcallfunc *)((char *)ufunc + place);
        if (field == NULL || *field == call_by_loop || ((Tables *)ufunc)->nout != 1 || (CallUfunc != NULL && *field != CallUfunc))
            continue;
        CallUfunc = *field;
        *field = call_by_loop;
        many++;
    }
    return PyLong_FromLong(many);
}
