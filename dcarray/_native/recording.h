/* Recording of element-wise calls on large arrays, as `elementwise` of dcarray/recording/fast_path.py does.
 *
 * A call is recorded here if its inner loop is cached, its operands are arrays of one class and numbers, and nothing
 * about them is unusual.  Every other call is declined. */

/* What is looked up once in the namespace of fast_path.py, with the variables that hold it. */
#define RECORDER(X)                                                                                                    \
    X("SIGNATURES", Signatures) X("SCALARS", NumberKinds) X("IS_INTERNAL", Internal) X("NAMES", UfuncNames)             \
    X("LOCAL", Local) X("STATE", ErrorState) X("session", SessionHere) X("session_for", SessionFor) X("LOCK", Lock)    \
    X("enter", Enter) X("target_of", TargetOf) X("run_urgent", RunUrgent) X("user_frame", UserFrame)
#define DECLARE_RECORDER(text, variable) static PyObject *variable;
RECORDER(DECLARE_RECORDER)
static PyObject *Acquire, *Release; /* methods of the lock */

enum { MOST_INPUTS = 3, MOST_NUMBERS = 256 };

/* A call of an element-wise operation; references are borrowed. */
typedef struct {
    PyObject *name, *const *inputs, *out; /* `out`: the array that is written, or NULL */
    int count;                            /* of inputs */
    PyTypeObject *type;                   /* of the arrays */
    PyObject *device;                     /* of that class; None: the CPU */
    int spread;                           /* are two arrays of different shapes broadcast? */
    PyObject *loop, *dtype, *shape;       /* the inner loop; of the result */
    Py_ssize_t size;                      /* elements of the result */
} MapCall;

static PyObject *fast_nb_add(PyObject *, PyObject *);

/* Is this a class of arrays on a device, which `adopt_device_class` has seen? */
static inline int
is_device_class(PyTypeObject *type)
{
    return type != Wrapped && type->tp_as_number != NULL && type->tp_as_number->nb_add == fast_nb_add;
}

/* Is this a large array of the class of the others (the first of which sets it)?  Anything else that is wrapped is none. */
static inline int
is_large_of(PyObject *x, PyTypeObject **type)
{
    if (*type == NULL && (Py_TYPE(x) == Wrapped || is_device_class(Py_TYPE(x))))
        *type = Py_TYPE(x);
    return Py_TYPE(x) == *type && AT(x, Small) == Py_None;
}

/* The number of elements of a shape. */
static Py_ssize_t
elements_in(PyObject *shape)
{
    Py_ssize_t n = 1;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(shape); k++)
        n *= PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, k));
    return n;
}

static inline int
are_equal(PyObject *a, PyObject *b)
{
    return a == b || PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

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
    PyObject *shapes[MOST_INPUTS] = {NULL}, *key, *found, *first = NULL;
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
    found = done && first != NULL && key != NULL ? PyDict_GetItemWithError(Signatures, key) : NULL;
    Py_XDECREF(key);
    if (found == NULL)
        return 0;
    call->loop = PyTuple_GET_ITEM(found, 0);
    call->dtype = PyTuple_GET_ITEM(found, 1);
    call->shape = call->spread ? PyTuple_GET_ITEM(found, 2) : first;
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
    if (call->size >= below && (call->size * Known[loop_char(call, -1) & 127].width > MOST_AT_ONCE || !in_eager_period()))
        return 0;
    for (int k = 0; k < call->count; k++)
        if (Py_TYPE(call->inputs[k]) == call->type && !is_idle(call->inputs[k]))
            return 0;
    return call->out == NULL || is_idle(call->out);
}

/* The session of this thread for a device; a new reference. */
static PyObject *
session_of(PyObject *device)
{
    static PyObject *here, *all; /* names of attributes */
    PyObject *found, *known;
    if (here == NULL && ((here = PyUnicode_InternFromString("session")) == NULL || (all = PyUnicode_InternFromString("known")) == NULL))
        return NULL;
    known = PyObject_GetAttr(Local, device == Py_None ? here : all);
    if (known == NULL) {
        PyErr_Clear();
        return device == Py_None ? PyObject_CallNoArgs(SessionHere) : PyObject_CallOneArg(SessionFor, device);
    }
    if (device == Py_None)
        return known;
    found = Py_XNewRef(PyDict_GetItemWithError(known, device));
    Py_DECREF(known);
    return found != NULL || PyErr_Occurred() ? found : PyObject_CallOneArg(SessionFor, device);
}

/* The recording for the next entry; a new reference. */
static PyObject *
recording_of(PyObject *session)
{
    PyObject *rec = PyObject_GetAttr(session, RecName);
    if (rec != NULL && AT(rec, Due) != Py_False)
        Py_SETREF(rec, PyObject_CallMethodNoArgs(session, ReadyName));
    return rec;
}

/* Declare a store that heads its family, and whose elements are there, as `Recording.declare` does: 1, or 0 if anything about
 * it is unusual; -1 with an exception. */
static int
declare_old(PyObject *rec, PyObject *store)
{
    PyObject *remote = AT(store, Remote), *slot, *entry, *held, *place = NULL;
    int done = -1;
    if (AT(store, Head) != Py_None || AT(store, Exports) != Py_None || AT(store, EagerSite) != Py_None)
        return 0;
    if (remote != Py_None) {
        if ((place = PyObject_GetAttr(remote, DeviceName)) == NULL)
            return -1;
        Py_DECREF(place);
        if (place == Py_None || place != AT(rec, Device)) /* a block of a rank, or a copy from device to device */
            return 0;
    }
    else if (AT(store, Mem) == Py_None)
        return 0;
    if ((AT(store, Used) != remote && !has_run(AT(store, Used))) || (AT(store, Dirty) != remote && !has_run(AT(store, Dirty))))
        return 0;
    slot = PyLong_FromSsize_t(PyList_GET_SIZE(AT(rec, Slots)));
    held = slot == NULL ? NULL : PyNumber_Add(AT(rec, HeldElements), AT(store, Size));
    entry = held == NULL ? NULL : PyTuple_Pack(5, OldName, AT(store, Char), AT(store, Geometry), AT(store, Mem) == Py_None ? Py_None : AT(store, Strides), slot);
    if (entry != NULL && PyList_Append(AT(rec, Slots), store) == 0 && PyList_Append(AT(rec, Log), entry) == 0) {
        Py_XSETREF(AT(store, Slot), Py_NewRef(slot));
        Py_XSETREF(AT(store, Recorded), Py_NewRef(rec));
        if (PyLong_AsSsize_t(held) > HELD_ELEMENTS)
            Py_XSETREF(AT(rec, Due), Py_NewRef(Py_True));
        Py_XSETREF(AT(rec, HeldElements), Py_NewRef(held));
        done = 1;
    }
    Py_XDECREF(slot);
    Py_XDECREF(held);
    Py_XDECREF(entry);
    return done;
}

/* The argument of an entry that stands for an array of the domain's shape, or one that is broadcast. */
static PyObject *
array_argument(MapCall *call, PyObject *rec, PyObject *x)
{
    PyObject *store = store_of(x), *head, *index, *made;
    int found;
    if (store == NULL)
        return NULL;
    head = family_of(store);
    if ((AT(store, Recorded) != rec || AT(head, Exports) != Py_None) && (found = declare_old(rec, store)) <= 0) {
        PyObject *two[2] = {rec, store}, *slot = found < 0 ? NULL : PyObject_Vectorcall(Enter, two, 2, NULL);
        Py_XDECREF(slot);
        if (slot == NULL)
            return NULL;
    }
    Py_XSETREF(AT(head, Used), Py_NewRef(rec));
    index = get_index(x, NULL);
    if (index == NULL)
        return NULL;
    made = PyTuple_Pack(3, AT(store, Slot), index,
                        call->spread && !are_equal(AT(x, Shape), call->shape) ? AT(x, Shape) : Py_None);
    Py_DECREF(index);
    return made;
}

/* Append to a string that a slot holds; -1 with an exception. */
static int
append_char(PyObject **text, Py_UCS4 letter)
{
    PyObject *more = PyUnicode_FromOrdinal((int)letter), *joined = more == NULL ? NULL : PyUnicode_Concat(*text, more);
    Py_XDECREF(more);
    if (joined == NULL)
        return -1;
    Py_SETREF(*text, joined);
    return 0;
}

/* The argument of an entry that stands for a number: its place in the recording's arena, as `Recording.scalar`. */
static PyObject *
number_argument(PyObject *rec, PyObject *value, Py_UCS4 letter)
{
    Py_ssize_t k = PyUnicode_GET_LENGTH(AT(rec, Kinds));
    char *place = (char *)PyLong_AsVoidPtr(AT(rec, Arena)) + 16 * k;
    if (k >= MOST_NUMBERS || !((letter == 'd' && (PyFloat_CheckExact(value) || PyLong_CheckExact(value))) ||
                               (letter == 'l' && PyLong_CheckExact(value))))
        return PyObject_CallMethod(rec, "scalar", "OC", value, (int)letter);
    if (letter == 'd') {
        double number = PyFloat_CheckExact(value) ? PyFloat_AS_DOUBLE(value) : PyLong_AsDouble(value);
        if (number == -1 && PyErr_Occurred())
            return NULL;
        memcpy(place, &number, sizeof(number));
    }
    else {
        long number = PyLong_AsLong(value);
        if (number == -1 && PyErr_Occurred())
            return NULL;
        memcpy(place, &number, sizeof(number));
    }
    return append_char(&AT(rec, Kinds), letter) < 0 ? NULL : PyLong_FromSsize_t(k);
}

/* The place in the user's code: its code object (new) and instruction; NULL with an exception. */
static PyCodeObject *
user_place(int *instruction)
{
    PyFrameObject *frame = PyEval_GetFrame(), *found = NULL;
    PyCodeObject *code = PyFrame_GetCode(frame);
    PyObject *key = PyLong_FromVoidPtr(code), *internal = key == NULL ? NULL : PyDict_GetItemWithError(Internal, key);
    Py_XDECREF(key);
    if (internal != Py_False) { /* a function of dcarray's or NumPy's is between, or the code is new */
        found = (PyFrameObject *)PyObject_CallFunction(UserFrame, "i", 1);
        if (found == NULL) {
            Py_DECREF(code);
            return NULL;
        }
        Py_SETREF(code, PyFrame_GetCode(found));
        frame = found;
    }
    *instruction = PyFrame_GetLasti(frame);
    Py_XDECREF(found);
    return code;
}

/* Tell the recording about the next statement what it has to know only now and then; -1 with an exception. */
static int
note_statement(MapCall *call, PyObject *rec, PyObject *session, PyObject *code, PyObject *instruction, PyObject *state)
{
    PyObject *ends = AT(rec, IterationEnds), *r = Py_None;
    if (PyDict_GET_SIZE(ends)) {
        PyObject *end = PyDict_GetItemWithError(ends, instruction);
        if (end == code)
            Py_XSETREF(AT(rec, Due), Py_NewRef(Py_True));
    }
    if (state != AT(rec, State) && (r = PyObject_CallMethod(rec, "note_state", "O", state)) != NULL)
        Py_DECREF(r);
    if (r != NULL && PyList_GET_SIZE(AT(rec, Sites)) == 0) {
        PyObject *awaited = PyObject_GetAttr(session, AwaitedName);
        r = awaited;
        if (awaited != NULL && PyDict_GET_SIZE(awaited))
            r = PyObject_CallMethod(rec, "await_plan", "OO", code, instruction);
        if (r != awaited)
            Py_XDECREF(r);
        Py_XDECREF(awaited);
    }
    if (r == NULL)
        return -1;
    if (AT(rec, Device) == Py_None) {
        Py_ssize_t below = eager_below();
        if (below < 0)
            return -1;
        if (call->size < below) {
            r = PyObject_CallMethod(rec, "note_part", "OOO", code, instruction, call->name);
            Py_XDECREF(r);
            return r == NULL ? -1 : 0;
        }
        return PySet_Clear(AT(rec, Parts));
    }
    return 0;
}

/* Declare the store of the result, which the next entry computes; returns its slot, new. */
static PyObject *
declare_new(PyObject *rec, PyObject *store)
{
    PyObject *slots = AT(rec, Slots), *slot = PyLong_FromSsize_t(PyList_GET_SIZE(slots)), *weak, *entry;
    weak = slot == NULL ? NULL : PyWeakref_NewRef(store, NULL);
    entry = weak == NULL ? NULL : PyTuple_Pack(4, NewName, AT(store, Char), AT(store, Geometry), slot);
    if (entry == NULL || PyList_Append(slots, weak) < 0 || PyList_Append(AT(rec, News), slot) < 0 ||
        PyList_Append(AT(rec, Log), entry) < 0)
        Py_CLEAR(slot);
    else {
        Py_XSETREF(AT(store, Slot), Py_NewRef(slot));
        Py_XSETREF(AT(store, Recorded), Py_NewRef(rec));
        Py_XSETREF(AT(store, Dirty), Py_NewRef(rec));
    }
    Py_XDECREF(weak);
    Py_XDECREF(entry);
    return slot;
}

/* The slot and the window, new, of the array that the next entry writes; -1 with an exception. */
static int
written_place(MapCall *call, PyObject *rec, PyObject **slot, PyObject **index)
{
    PyObject *two[2] = {rec, call->out}, *found = PyObject_Vectorcall(TargetOf, two, 2, NULL);
    if (found == NULL)
        return -1;
    *slot = Py_NewRef(PyTuple_GET_ITEM(found, 0));
    *index = Py_NewRef(PyTuple_GET_ITEM(found, 1));
    Py_DECREF(found);
    return 0;
}

/* Log a call, with the lock held; returns the array with its result. */
static PyObject *
log_call(MapCall *call)
{
    enum { HEAD = 6 };
    PyObject *session = session_of(call->device), *rec = session == NULL ? NULL : recording_of(session);
    PyObject *entry = rec == NULL ? NULL : PyTuple_New(HEAD + call->count), *result = NULL, *store = NULL, *slot = NULL, *index = NULL;
    PyObject *state = NULL, *site = NULL, *number = NULL;
    PyCodeObject *code = NULL;
    int instruction = 0, done = entry != NULL;
    for (int k = 0; done && k < call->count; k++) {
        PyObject *x = call->inputs[k];
        x = Py_TYPE(x) == call->type ? array_argument(call, rec, x) : number_argument(rec, x, loop_char(call, k));
        if ((done = x != NULL))
            PyTuple_SET_ITEM(entry, HEAD + k, x);
        else if (PyErr_ExceptionMatches(PyExc_OverflowError))
            PyErr_Clear(); /* an integer that does not fit, of which NumPy's error tells */
    }
    if (done && (code = user_place(&instruction)) != NULL && PyContextVar_Get(ErrorState, NULL, &state) == 0 &&
        (number = PyLong_FromLong(instruction)) != NULL)
        site = PyTuple_Pack(4, code, number, state, Py_None);
    if (site == NULL)
        goto end;
    if (call->out != NULL) {
        result = Py_NewRef(call->out);
        done = written_place(call, rec, &slot, &index) == 0;
    }
    else if ((store = new_store(call->shape, call->dtype, call->size)) != NULL) {
        result = new_large(call->type, store, call->shape, Py_None, Py_False, Py_None, Py_None);
        slot = result == NULL ? NULL : declare_new(rec, store);
        index = Py_NewRef(Py_None);
        done = slot != NULL;
    }
    else
        done = 0;
    if (done) {
        PyObject *head[HEAD] = {Py_NewRef(MapName), Py_NewRef(call->name), Py_NewRef(call->loop), Py_NewRef(call->shape), slot, index};
        for (int k = 0; k < HEAD; k++)
            PyTuple_SET_ITEM(entry, k, head[k]);
        slot = index = NULL;
        done = PyList_Append(AT(rec, Log), entry) == 0 && note_statement(call, rec, session, (PyObject *)code, number, state) == 0 &&
               PyList_Append(AT(rec, Sites), site) == 0;
    }
    if (done && PyList_GET_SIZE(AT(rec, Log)) > PyLong_AsSsize_t(AT(rec, EntryLimit)))
        Py_XSETREF(AT(rec, Due), Py_NewRef(Py_True));
    if (done && AT(rec, Urgent) != Py_False) {
        PyObject *r = PyObject_CallOneArg(RunUrgent, rec);
        Py_XDECREF(r);
        done = r != NULL;
    }
    if (!done)
        Py_CLEAR(result);
end:
    Py_XDECREF(session);
    Py_XDECREF(rec);
    Py_XDECREF(entry);
    Py_XDECREF(store);
    Py_XDECREF(slot);
    Py_XDECREF(index);
    Py_XDECREF(state);
    Py_XDECREF(site);
    Py_XDECREF(number);
    Py_XDECREF(code);
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
    result = log_call(&call);
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
