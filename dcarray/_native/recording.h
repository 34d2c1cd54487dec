/* Recording of element-wise calls on large arrays, as `elementwise` of dcarray/recording/fast_path.py does.
 *
 * A call is recorded here if its inner loop is cached, its operands are arrays of one class and numbers, and nothing
 * about them is unusual.  Every other call is declined. */

/* The kind of an operand in the cache of loops, borrowed; NULL, perhaps with an exception, if the call is not for us. */
static PyObject *
operand_kind(MapCall *call, PyObject *x, PyObject **shape)
{
    PyObject *store;
    if (!is_large_of(x, &call->type))
        return PyDict_GetItemWithError(NumberKinds, (PyObject *)Py_TYPE(x));
    if ((store = store_of(x)) == NULL || AT(store, Permuted) != Py_False)
        return NULL;
    *shape = AT(x, Shape);
    return AT(store, Char);
}

/* Find the loop of a call, and what its result is: 1, or 0, perhaps with an exception, if it is not for us. */
static int
find_signature(MapCall *call)
{
    PyObject *shapes[MOST_INPUTS] = {NULL}, *key, *signature, *first = NULL;
    int n = call->count, done = 1;
    if (call->out != NULL && (!is_large_of(call->out, &call->type) || AT(call->out, Readonly) != Py_False))
        return 0;
    if (call->out != NULL)
        first = AT(call->out, Shape);
    key = PyTuple_New(1 + n);
    if (key == NULL)
        return 0;
    PyTuple_SET_ITEM(key, 0, Py_NewRef(call->name));
    for (int k = 0; done && k < n; k++) {
        PyObject *kind = operand_kind(call, call->inputs[k], shapes + k);
        done = kind != NULL;
        PyTuple_SET_ITEM(key, 1 + k, Py_XNewRef(kind));
        if (first == NULL)
            first = shapes[k];
        else if (shapes[k] != NULL && !are_equal(shapes[k], first)) {
            call->spread = n == 2 && call->out == NULL;
            done = done && call->spread;
        }
    }
    if (done && call->spread) {
        PyObject *longer = PyTuple_Pack(5, PyTuple_GET_ITEM(key, 0), PyTuple_GET_ITEM(key, 1), PyTuple_GET_ITEM(key, 2),
                                        shapes[0], shapes[1]);
        Py_SETREF(key, longer);
    }
    signature = done && first != NULL && key != NULL ? PyDict_GetItemWithError(Signatures, key) : NULL;
    Py_XDECREF(key);
    if (signature == NULL)
        return 0;
    call->loop = PyTuple_GET_ITEM(signature, 0);
    call->dtype = PyTuple_GET_ITEM(signature, 1);
    call->shape = call->spread ? PyTuple_GET_ITEM(signature, 2) : first;
    call->size = elements_in(call->shape);
    return call->size > 0 && PyTuple_GET_SIZE(call->shape) > 0;
}

/* The dtype character of an operand of the loop, or, at -1, of the result. */
static inline Py_UCS4
loop_char(MapCall *call, int k)
{
    return PyUnicode_READ_CHAR(call->loop, k < 0 ? PyUnicode_GET_LENGTH(call->loop) - 1 : k);
}

/* Does NumPy run the call at once, as `eager_call` of tiering/policy.py says?  -1 with an exception. */
static int
runs_at_once(MapCall *call)
{
    Py_ssize_t below = eager_below();
    if (below < 0)
        return -1;
    if (loop_char(call, -1) == '?' && loop_char(call, 0) != '?') /* truths of numbers */
        below *= PASS;
    if (call->size >= below)
        return 0;
    for (int k = 0; k < call->count; k++)
        if (Py_TYPE(call->inputs[k]) == call->type && !is_idle(call->inputs[k]))
            return 0;
    return call->out == NULL || is_idle(call->out);
}

/* Log a call, with the lock held; returns the array with its result. */
static PyObject *
log_call(MapCall *call, PyObject *rec)
{
    enum { HEAD = 6 };
    PyObject *entry = PyTuple_New(HEAD + call->count), *result = NULL, *store = NULL, *slot = NULL, *index = NULL;
    int done = entry != NULL;
    for (int k = 0; done && k < call->count; k++) {
        PyObject *x = call->inputs[k];
        x = Py_TYPE(x) == call->type ? array_argument(call, rec, x) : number_argument(rec, x, loop_char(call, k));
        if ((done = x != NULL))
            PyTuple_SET_ITEM(entry, HEAD + k, x);
        else if (PyErr_ExceptionMatches(PyExc_OverflowError))
            PyErr_Clear(); /* an integer that does not fit, of which NumPy's error tells */
    }
    if (done && call->out != NULL) {
        result = Py_NewRef(call->out);
        done = written_place(call, rec, &slot, &index) == 0;
    }
    else if (done && (done = (store = new_store(call->shape, call->dtype, call->size)) != NULL)) {
        result = new_large(call->type, store, call->shape, Py_None, Py_False, Py_None, Py_None);
        slot = result == NULL ? NULL : declare_new(rec, store);
        index = Py_NewRef(Py_None);
        done = slot != NULL;
    }
    if (done) {
        PyObject *head[HEAD] = {MapName, call->name, call->loop, call->shape, slot, index};
        for (int k = 0; k < HEAD; k++)
            PyTuple_SET_ITEM(entry, k, Py_NewRef(head[k]));
        done = log_statement(rec, entry, call->size, Py_None) == 0;
    }
    if (!done)
        Py_CLEAR(result);
    Py_XDECREF(entry);
    Py_XDECREF(store);
    Py_XDECREF(slot);
    Py_XDECREF(index);
    return result;
}

/* Log a call as `log_call`, and run the recording if it is urgent.  No handler of a signal and no finalizer of the program, which
 * may record themselves, runs between parts of the entry. */
static PyObject *
log_at_once(MapCall *call)
{
    PyObject *session = session_of(call->device), *rec = session == NULL ? NULL : recording_of(session), *result = NULL;
    if (rec != NULL) {
        unsigned long thread = hold_signals();
        int collects = PyGC_Disable();
        result = log_call(call, rec);
        if (collects)
            PyGC_Enable();
        let_go(thread);
        if (result != NULL && run_if_urgent(rec) < 0)
            Py_CLEAR(result);
    }
    Py_XDECREF(session);
    Py_XDECREF(rec);
    return result;
}

/* Record a call; returns the array with its result.  It may decline. */
static PyObject *
record_call(PyObject *name, PyObject *const *inputs, int count, PyObject *out)
{
    MapCall call = {.name = name, .inputs = inputs, .out = out, .count = count, .device = Py_None};
    PyObject *result = NULL, *type, *value, *trace, *r;
    int at_once;
    if (Signatures == NULL || count > MOST_INPUTS || !find_signature(&call) ||
        (out != NULL && PyUnicode_READ_CHAR(AT(store_of(out), Char), 0) != loop_char(&call, -1)))
        return NULL;
    if (call.type != Wrapped) { /* the class refers to it */
        if ((call.device = PyObject_GetAttr((PyObject *)call.type, ItsDevice)) == NULL)
            return NULL;
        Py_DECREF(call.device);
    }
    else if ((at_once = runs_at_once(&call)) != 0)
        return NULL;
    if ((r = PyObject_CallNoArgs(Acquire)) == NULL)
        return NULL;
    Py_DECREF(r);
    result = log_at_once(&call);
    PyErr_Fetch(&type, &value, &trace);
    r = PyObject_CallNoArgs(Release);
    Py_XDECREF(r);
    PyErr_Restore(type, value, trace);
    return result;
}

/* record(name, inputs, out): as `elementwise` of fast_path.py; None if it declines. */
static PyObject *
record(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *out = nargs == 3 && args[2] != Py_None ? args[2] : NULL, *result;
    if (nargs < 2 || nargs > 3 || !PyTuple_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "a name, a tuple of operands and perhaps an array are wanted");
        return NULL;
    }
    result = record_call(args[0], PySequence_Fast_ITEMS(args[1]), (int)PyTuple_GET_SIZE(args[1]), out);
    return result != NULL || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}

/* Record `target[...] = value` between large arrays of one class: 1, or 0, perhaps with an exception, if it declines. */
static int
record_assignment(PyObject *target, PyObject *value)
{
    PyObject *one, *other, *r;
    int same = 0;
    if (AT(value, Small) == Py_None && AT(target, Readonly) == Py_False && store_of(value) == AT(target, Store) &&
        are_equal(AT(value, Shape), AT(target, Shape))) {
        one = get_index(value, NULL);
        other = get_index(target, NULL);
        same = one != NULL && other != NULL && are_equal(one, other); /* as after `x[key] += y` */
        Py_XDECREF(one);
        Py_XDECREF(other);
    }
    if (same || PyErr_Occurred())
        return same;
    r = record_call(CastName, &value, 1, target);
    Py_XDECREF(r);
    return r != NULL;
}

/* set_recorder(names): from now on, calls are recorded here, with what fast_path.py has under these names. */
static PyObject *
set_recorder(PyObject *module, PyObject *names)
{
#define FIND_RECORDER(text, variable) || (variable = Py_XNewRef(PyDict_GetItemString(names, text))) == NULL
    if (!PyDict_Check(names) RECORDER(FIND_RECORDER)) {
        Signatures = NULL;
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "a namespace with the recorder's names is wanted");
        return NULL;
    }
    Acquire = PyObject_GetAttrString(Lock, "acquire");
    Release = PyObject_GetAttrString(Lock, "release");
    if (Acquire == NULL || Release == NULL) {
        Signatures = NULL;
        return NULL;
    }
    Py_RETURN_NONE;
}
