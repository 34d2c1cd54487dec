/* Calls of NumPy's ufuncs by their inner loops at once (dcarray/core/floor.py).
 *
 * Python calls a ufunc, also for an operator, by the function in its field `vectorcall`, which is replaced.  What NumPy does before
 * and after a loop takes longer than a loop over some hundred elements.  And for windows of large arrays, and for operands that are
 * broadcast, NumPy calls the loop for one row after the other, so that no loop is long enough for several threads; here these share
 * the rows. */

static vectorcallfunc CallUfunc; /* NumPy's own function */
static PyObject *Maximum, *Minimum;
static PyObject *Exact[4]; /* ufuncs whose results are rounded in one way only */
static const double STRIDED_TAKES = 1; /* nanoseconds, about, of an element that does not lie beside the last one */
static int (*GiveErrors)(const char *, int); /* PyUFunc_GiveFloatingpointErrors */
enum { LEAST_ROW = 6, LEAST_CLEARED = 48 }; /* elements of a row; the second where a loop clears floating-point exceptions at its end */
enum { API_GIVE_ERRORS = 46, LONG_ROW = 256, SHORT_ROW = 5, NEAR = 1 << 14 /* elements that a near cache holds */ };

typedef struct {
    Shared shared; /* rows */
    SharedLoop *loop;
    char *data[3];
    Py_ssize_t strides[3][MOST_AXES], shape[MOST_AXES]; /* of the operands; a number has strides of 0 */
    int operands, ndim;
} RowsRun;

/* The loop moves along the last axis; an operand that is not there has strides of 0. */
static void
do_rows(const Shared *shared, Py_ssize_t row, Py_ssize_t end)
{
    const RowsRun *r = (const RowsRun *)shared;
    Inner *code = r->loop->code;
    int inner = r->ndim - 2;
    Py_ssize_t index[MOST_AXES], count = r->shape[inner + 1], left = row;
    const Py_ssize_t steps[3] = {r->strides[0][inner + 1], r->strides[1][inner + 1], r->strides[2][inner + 1]};
    const Py_ssize_t by[3] = {r->strides[0][inner], r->strides[1][inner], r->strides[2][inner]};
    char *at[3] = {r->data[0], r->data[1], r->data[2]};
    for (int axis = inner; axis >= 0; axis--) {
        index[axis] = left % r->shape[axis];
        left /= r->shape[axis];
        for (int k = 0; k < 3; k++)
            at[k] += index[axis] * r->strides[k][axis];
    }
    while (row < end) {
        Py_ssize_t rows = r->shape[inner] - index[inner] < end - row ? r->shape[inner] - index[inner] : end - row;
        row += rows;
        index[inner] += rows;
        for (; rows > 0; rows--) {
            char *now[3] = {at[0], at[1], at[2]}; /* a loop may change what it is given */
            code(now, &count, steps, r->loop->data);
            at[0] += by[0];
            at[1] += by[1];
            at[2] += by[2];
        }
        for (int axis = inner; axis > 0 && index[axis] == r->shape[axis]; axis--) {
            for (int k = 0; k < 3; k++)
                at[k] += r->strides[k][axis - 1] - r->strides[k][axis] * r->shape[axis];
            index[axis] = 0;
            index[axis - 1]++;
        }
    }
}

/* The loop moves along the first of two axes, where rows are short. */
static void
do_columns(const Shared *shared, Py_ssize_t row, Py_ssize_t end)
{
    const RowsRun *r = (const RowsRun *)shared;
    Py_ssize_t steps[3], count = end - row;
    for (Py_ssize_t column = 0; column < r->shape[1]; column++) {
        char *now[3];
        for (int k = 0; k < r->operands; k++) {
            steps[k] = r->strides[k][0];
            now[k] = r->data[k] + row * steps[k] + column * r->strides[k][1];
        }
        r->loop->code(now, &count, steps, r->loop->data);
    }
}

/* Do the elements of an array lie in C's order, with or without gaps, so that none lies where another one does?  They end at `*end`. */
static int
are_in_order(Array *a, char **end)
{
    Py_ssize_t extent = Known[a->dtype->type & 127].width;
    for (int axis = a->ndim - 1; axis >= 0; axis--) {
        if (a->shape[axis] == 1)
            continue;
        if (a->strides[axis] < extent)
            return 0;
        extent += a->strides[axis] * (a->shape[axis] - 1);
    }
    *end = a->data + extent;
    return 1;
}

/* The strides of an array that is broadcast to a shape; 0 if it cannot be. */
static int
broadcast(Array *a, const Py_ssize_t *shape, int ndim, Py_ssize_t *strides)
{
    for (int axis = 0, own = a->ndim - ndim; axis < ndim; axis++, own++) {
        int is_one = own < 0 || a->shape[own] == 1;
        if (!is_one && a->shape[own] != shape[axis])
            return 0;
        strides[axis] = is_one ? 0 : a->strides[own];
    }
    return 1;
}

/* Make one axis of two that all operands go through by one stride. */
static void
join_axes(RowsRun *r)
{
    int last = 0;
    for (int axis = 1; axis < r->ndim; axis++) {
        int joins = 1;
        for (int k = 0; k < r->operands; k++)
            joins = joins && r->strides[k][last] == r->strides[k][axis] * r->shape[axis];
        last += !joins;
        r->shape[last] = joins ? r->shape[last] * r->shape[axis] : r->shape[axis];
        for (int k = 0; k < r->operands; k++)
            r->strides[k][last] = r->strides[k][axis];
    }
    r->ndim = last + 1;
}

/* Have the loop move along the axis before the last one where rows are short, such as differences of points in space: does it? */
static int
turn_rows(RowsRun *r, PyObject *ufunc, int compares)
{
    int last = r->ndim - 1, is_exact = compares || ufunc == Exact[0] || ufunc == Exact[1] || ufunc == Exact[2] || ufunc == Exact[3];
    if (last < 1 || !is_exact || r->shape[last] > SHORT_ROW || r->shape[last - 1] < LONG_ROW / SHORT_ROW)
        return 0;
    if (last == 1) {
        r->shared = (Shared){.work = do_columns, .items = r->shape[0], .size = r->shape[1], .piece = NEAR / SHORT_ROW};
        return 1;
    }
    if (r->shape[last] * r->shape[last - 1] > NEAR)
        return 0;
    for (int k = -1; k < r->operands; k++) {
        Py_ssize_t *axes = k < 0 ? r->shape : r->strides[k], kept = axes[last];
        axes[last] = axes[last - 1];
        axes[last - 1] = kept;
    }
    return 1;
}

/* A call on windows of large arrays, or on arrays that are broadcast, by several threads or on short rows; NULL, without an
 * exception, if NumPy is to do it. */
static PyObject *
call_by_rows(PyObject *ufunc, PyObject *p, PyObject *q, PyObject *into)
{
    PyObject *operands[3] = {p, q, into};
    int count = q == NULL ? 1 : 2, gaps = 0;
    Array *like = (Array *)(Py_TYPE(p) == PlainClass ? p : q), *out = (Array *)into;
    char number[16], *ends[3];
    if (q == NULL)
        operands[1] = into;
    if (like == NULL || Py_TYPE(like) != PlainClass || (into != NULL && Py_TYPE(into) != PlainClass))
        return NULL;
    RowsRun r = {.operands = count + 1};
    Py_ssize_t n = 1, shape[MOST_AXES];
    for (int k = 0; k < count; k++)
        if (Py_TYPE(operands[k]) == PlainClass)
            r.ndim = ((Array *)operands[k])->ndim > r.ndim ? ((Array *)operands[k])->ndim : r.ndim;
    if (r.ndim < 2 || r.ndim > MOST_AXES || (into != NULL && out->ndim != r.ndim))
        return NULL;
    for (int axis = 0; axis < r.ndim; axis++) {
        r.shape[axis] = 1;
        for (int k = 0; k < count; k++) {
            Array *one = (Array *)operands[k];
            int own = Py_TYPE(one) == PlainClass ? one->ndim - r.ndim + axis : -1;
            if (own >= 0 && one->shape[own] != 1)
                r.shape[axis] = one->shape[own];
        }
        if (r.shape[axis] < 1 || r.shape[axis] > ((Py_ssize_t)1 << 40) / n)
            return NULL;
        n *= r.shape[axis];
    }
    if (n < (r.shape[r.ndim - 1] <= SHORT_ROW ? TRIED : LEAST_SHARED))
        return NULL;
    for (int k = into == NULL ? count - 1 : count; k >= 0; k--) {
        Array *one = (Array *)operands[k];
        if (Py_TYPE(one) != PlainClass)
            continue; /* a number, perhaps */
        if (!is_known(one->dtype) || !(one->flags & ALIGNED) || !are_in_order(one, &ends[k]) || !broadcast(one, r.shape, r.ndim, r.strides[k]))
            return NULL;
        r.data[k] = one->data;
        int is_whole = one->ndim == r.ndim && memcmp(one->shape, r.shape, r.ndim * sizeof(Py_ssize_t)) == 0;
        gaps |= !is_whole || !(one->flags & IN_C_ORDER);
        if ((k == count && !is_whole) || (k < count && into != NULL && one->data < ends[count] && out->data < ends[k] &&
            (!is_whole || one->data != out->data || one->dtype != out->dtype || memcmp(one->strides, out->strides, r.ndim * sizeof(Py_ssize_t)) != 0)))
            return NULL;
    }
    if (!gaps || (into != NULL && (out->flags & (WRITEABLE | WARNS)) != WRITEABLE))
        return NULL;
    Loop *loop = loop_of(ufunc, (r.data[0] ? (Array *)p : like)->dtype->type, q == NULL ? 0 : (r.data[1] ? (Array *)q : like)->dtype->type);
    if (loop == NULL || (into != NULL && loop->result != (PyObject *)out->dtype))
        return NULL;
    for (int k = 0; k < count; k++)
        if (r.data[k] == NULL && !store_number(operands[k], like->dtype, r.data[k] = number))
            return NULL;
    int ndim = r.ndim;
    SharedLoop alone = {.code = loop->code, .data = loop->data};
    r.loop = loop->code == shared_loop ? loop->data : &alone;
    memcpy(shape, r.shape, sizeof(shape));
    for (int axis = r.ndim - 1; axis >= 0 && into == NULL; axis--)
        r.strides[count][axis] = axis == r.ndim - 1 ? Known[((Descr *)loop->result)->type & 127].width : r.strides[count][axis + 1] * shape[axis + 1];
    join_axes(&r);
    int compares = ((Descr *)loop->result)->type == '?', is_turned = turn_rows(&r, ufunc, compares), is_measured = is_turned || r.loop->cost != 0;
    Py_ssize_t row = r.shape[r.ndim - 1], least_row = compares || ufunc == Maximum || ufunc == Minimum ? LEAST_CLEARED : LEAST_ROW;
    if (r.shared.work == NULL)
        r.shared = (Shared){.work = do_rows, .loop = row >= LONG_ROW || !is_measured ? r.loop : NULL, .items = n / row, .size = row,
                            .piece = PIECE / (row + (Py_ssize_t)ROW_TAKES) + 1};
    int is_brief = is_measured && (is_turned ? STRIDED_TAKES * n : r.loop->cost * n + ROW_TAKES * r.shared.items) < LEAST_GAIN;
    if (r.ndim < 2 || (!is_turned && (row < least_row || is_brief || r.loop == &alone || SharingThreads < 2)))
        return NULL;
    if (into == NULL && (into = NewArray(PlainClass, Py_NewRef(loop->result), ndim, shape, NULL, NULL, 0, NULL)) == NULL) {
        PyErr_Clear();
        return NULL;
    }
    else if (out != NULL)
        Py_INCREF(into);
    r.data[count] = ((Array *)into)->data;
    Py_INCREF(p);
    Py_XINCREF(q);
    PyThreadState *state = PyEval_SaveThread();
    if (!is_measured || is_brief)
        do_pieces(&r.shared);
    else
        share_pieces(&r.shared);
    clear_flags();
    PyEval_RestoreThread(state);
    Py_DECREF(p);
    Py_XDECREF(q);
    if (r.shared.flags && GiveErrors(((Tables *)ufunc)->name, numpy_bits(r.shared.flags)) < 0)
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
        PyObject *q = inputs == 2 ? args[1] : NULL, *into = count == inputs ? NULL : args[inputs], *result = NULL;
        if (into == NULL)
            result = by_small_loop(ufunc, args[0], q);
        else if (by_loop_into(ufunc, args[0], q, into))
            result = Py_NewRef(into);
        if (result == NULL && GiveErrors != NULL)
            result = call_by_rows(ufunc, args[0], q, into);
        if (result != NULL || PyErr_Occurred())
            return result;
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
    static const char *const exact[] = {"add", "subtract", "multiply", "divide"};
    for (int k = 0; k < 4; k++)
        Exact[k] = PyDict_GetItemString(ufuncs, exact[k]);
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
