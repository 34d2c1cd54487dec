/* Entries of the log for element-wise calls: their operands, results and call sites (dcarray/recording/log.py). */

/* What is looked up once in the namespace of fast_path.py, with the variables that hold it. */
#define RECORDER(X)                                                                                                    \
    X("SIGNATURES", Signatures) X("SCALARS", NumberKinds) X("IS_INTERNAL", Internal) X("NAMES", UfuncNames)             \
    X("LOCAL", Local) X("STATE", ErrorState) X("session", SessionHere) X("session_for", SessionFor) X("LOCK", Lock)    \
    X("enter_by_python", Enter) X("commit_by_python", Commit) X("target_of", TargetOf) X("run_urgent", RunUrgent) X("user_frame", UserFrame)       \
    X("ENTRIES", MostEntries) X("HELD_ELEMENTS", MostHeld)
#define DECLARE_RECORDER(text, variable) static PyObject *variable;
RECORDER(DECLARE_RECORDER)
static PyObject *Acquire, *Release; /* methods of the lock */

enum { MOST_INPUTS = 3 };

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

static inline int
are_equal(PyObject *a, PyObject *b)
{
    return a == b || PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

/* The session of this thread for a device; a new reference. */
static PyObject *
session_of(PyObject *device)
{
    static PyObject *here, *all; /* names of attributes */
    PyObject *session, *known;
    if (here == NULL && ((here = PyUnicode_InternFromString("session")) == NULL || (all = PyUnicode_InternFromString("known")) == NULL))
        return NULL;
    known = PyObject_GetAttr(Local, device == Py_None ? here : all);
    if (known == NULL) {
        PyErr_Clear();
        return device == Py_None ? PyObject_CallNoArgs(SessionHere) : PyObject_CallOneArg(SessionFor, device);
    }
    if (device == Py_None)
        return known;
    session = Py_XNewRef(PyDict_GetItemWithError(known, device));
    Py_DECREF(known);
    return session != NULL || PyErr_Occurred() ? session : PyObject_CallOneArg(SessionFor, device);
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

/* Is work pending on memory that is neither this recording, nor what its device holds? */
static inline int
is_pending_elsewhere(PyObject *pending, PyObject *rec, PyObject *remote)
{
    return pending != rec && pending != remote && !has_run(pending);
}

/* Declare a store that heads its family, and whose elements are there, as `Recording.declare` does: 1, or 0 if anything about
 * it is unusual; -1 with an exception. */
static int
declare_old(PyObject *rec, PyObject *store)
{
    PyObject *remote = AT(store, Remote), *slot, *entry, *held, *place = NULL;
    int done = -1;
    if (AT(store, Head) != Py_None || AT(store, Exports) != Py_None)
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
    if (is_pending_elsewhere(AT(store, Used), rec, remote) || is_pending_elsewhere(AT(store, Dirty), rec, remote))
        return 0;
    slot = PyLong_FromSsize_t(PyList_GET_SIZE(AT(rec, Slots)));
    held = slot == NULL ? NULL : PyNumber_Add(AT(rec, HeldElements), AT(store, Size));
    entry = held == NULL ? NULL : PyTuple_Pack(5, OldName, AT(store, Char), AT(store, Geometry), AT(store, Mem) == Py_None ? Py_None : AT(store, Strides), slot);
    Py_DECREF(kept(NULL, store));
    if (entry != NULL && PyList_Append(AT(rec, Slots), store) == 0 && PyList_Append(AT(rec, Log), entry) == 0) {
        Py_XSETREF(AT(store, Slot), Py_NewRef(slot));
        Py_XSETREF(AT(store, Recorded), Py_NewRef(rec));
        if (PyLong_AsSsize_t(held) > PyLong_AsSsize_t(MostHeld))
            Py_XSETREF(AT(rec, Due), Py_NewRef(Py_True));
        Py_XSETREF(AT(rec, HeldElements), Py_NewRef(held));
        done = 1;
    }
    Py_XDECREF(slot);
    Py_XDECREF(held);
    Py_XDECREF(entry);
    return done;
}

/* enter(rec, store): as in dcarray/recording/operands.py. */
static PyObject *
enter(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *rec = args[0], *store = args[1], *head;
    int known = 0;
    if (Recordings == NULL || nargs != 2 || Py_TYPE(rec) != Recordings || Py_TYPE(store) != (PyTypeObject *)Stores)
        return PyObject_Vectorcall(Enter, args, nargs, NULL);
    head = family_of(store);
    if (AT(store, Recorded) != rec)
        known = declare_old(rec, store);
    else
        known = AT(head, Exports) == Py_None && !is_pending_elsewhere(AT(head, Used), rec, AT(head, Remote)) &&
                !is_pending_elsewhere(AT(head, Dirty), rec, AT(head, Remote));
    if (known < 0)
        return NULL;
    return known ? Py_NewRef(AT(store, Slot)) : PyObject_Vectorcall(Enter, args, 2, NULL);
}

/* The argument of an entry that stands for an array of the domain's shape, or one that is broadcast. */
static PyObject *
array_argument(MapCall *call, PyObject *rec, PyObject *x)
{
    PyObject *store = store_of(x), *two[2] = {rec, store}, *slot = store == NULL ? NULL : enter(NULL, two, 2), *index, *entry;
    if (slot == NULL)
        return NULL;
    Py_XSETREF(AT(family_of(store), Used), Py_NewRef(rec));
    index = get_index(x, NULL);
    entry = index == NULL ? NULL : PyTuple_Pack(3, slot, index, call->spread && !are_equal(AT(x, Shape), call->shape) ? AT(x, Shape) : Py_None);
    Py_XDECREF(index);
    Py_DECREF(slot);
    return entry;
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
    if (k >= PyLong_AsSsize_t(MostEntries) || !((letter == 'd' && (PyFloat_CheckExact(value) || PyLong_CheckExact(value))) ||
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

/* The place in the user's code: its code object (new) and instruction; NULL with an exception.  Functions of dcarray's and
 * NumPy's may be between. */
static PyCodeObject *
user_place(int *instruction)
{
    PyFrameObject *frame = (PyFrameObject *)Py_XNewRef((PyObject *)PyEval_GetFrame());
    PyObject *internal = Py_True;
    PyCodeObject *code = NULL;
    while (frame != NULL && internal == Py_True) {
        PyObject *key;
        Py_XSETREF(code, PyFrame_GetCode(frame));
        key = PyLong_FromVoidPtr(code);
        internal = key == NULL ? NULL : PyDict_GetItemWithError(Internal, key);
        Py_XDECREF(key);
        if (internal == Py_True)
            Py_SETREF(frame, PyFrame_GetBack(frame));
    }
    if (internal != Py_False && !PyErr_Occurred()) { /* code that is new, or nothing but dcarray's: Python says what counts */
        Py_XSETREF(frame, (PyFrameObject *)PyObject_CallFunction(UserFrame, "i", 1));
        Py_XSETREF(code, frame == NULL ? NULL : PyFrame_GetCode(frame));
    }
    if (PyErr_Occurred())
        Py_CLEAR(code);
    else
        *instruction = PyFrame_GetLasti(frame);
    Py_XDECREF(frame);
    return code;
}

/* Tell the recording what it has to know only now and then about a statement on `size` elements; -1 with an exception. */
static int
note_statement(PyObject *rec, PyObject *entry, Py_ssize_t size, PyObject *code, PyObject *instruction, PyObject *state)
{
    PyObject *ends = AT(rec, IterationEnds), *r = Py_None;
    if (PyDict_GET_SIZE(ends)) {
        PyObject *end = PyDict_GetItemWithError(ends, instruction);
        if (end == code)
            Py_XSETREF(AT(rec, Due), Py_NewRef(Py_True));
    }
    if (state != AT(rec, State) && (r = PyObject_CallMethod(rec, "note_state", "O", state)) != NULL)
        Py_DECREF(r);
    if (r == NULL)
        return -1;
    if (AT(rec, Device) == Py_None) {
        Py_ssize_t below = eager_below();
        if (below < 0)
            return -1;
        if (size < below) {
            r = PyObject_CallMethod(rec, "note_part", "OOO", code, instruction, PyTuple_GET_ITEM(entry, 1));
            Py_XDECREF(r);
            return r == NULL ? -1 : 0;
        }
        return PySet_Clear(AT(rec, Parts));
    }
    return 0;
}

/* Log a statement on `size` elements that the user's code calls, as `commit` of operands.py; -1 with an exception. */
static int
log_statement(PyObject *rec, PyObject *entry, Py_ssize_t size, PyObject *warned_as)
{
    int instruction = 0, done = 0;
    PyCodeObject *code = user_place(&instruction);
    PyObject *state = NULL, *number = NULL, *site = NULL;
    if (code != NULL && PyContextVar_Get(ErrorState, NULL, &state) == 0 && (number = PyLong_FromLong(instruction)) != NULL)
        site = PyTuple_Pack(4, code, number, state, warned_as);
    if (site != NULL && PyList_Append(AT(rec, Log), entry) == 0 &&
        note_statement(rec, entry, size, (PyObject *)code, number, state) == 0)
        done = PyList_Append(AT(rec, Sites), site) == 0;
    if (done && PyList_GET_SIZE(AT(rec, Log)) > PyLong_AsSsize_t(AT(rec, EntryLimit)))
        Py_XSETREF(AT(rec, Due), Py_NewRef(Py_True));
    Py_XDECREF(code);
    Py_XDECREF(state);
    Py_XDECREF(number);
    Py_XDECREF(site);
    return done ? 0 : -1;
}

/* Run a recording whose entry is complete, if that is urgent; -1 with an exception. */
static int
run_if_urgent(PyObject *rec)
{
    PyObject *r = AT(rec, Urgent) == Py_False ? Py_NewRef(Py_None) : PyObject_CallOneArg(RunUrgent, rec);
    Py_XDECREF(r);
    return r == NULL ? -1 : 0;
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

/* commit(rec, entry, warned_as): as in dcarray/recording/operands.py. */
static PyObject *
commit(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *domain = nargs > 1 && PyTuple_Check(args[1]) && PyTuple_GET_SIZE(args[1]) > 3 ? PyTuple_GET_ITEM(args[1], 3) : NULL;
    int sized;
    if (Recordings == NULL || nargs > 3 || Py_TYPE(args[0]) != Recordings || domain == NULL || !PyTuple_Check(domain))
        return PyObject_Vectorcall(Commit, args, nargs, NULL);
    sized = PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(args[1], 0), "call") != 0;
    if (log_statement(args[0], args[1], sized ? elements_in(domain) : PY_SSIZE_T_MAX, nargs == 3 ? args[2] : Py_None) < 0 ||
        run_if_urgent(args[0]) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Declare the store of the result, which the next entry computes; returns its slot, new. */
static PyObject *
declare_new(PyObject *rec, PyObject *store)
{
    PyObject *slots = AT(rec, Slots), *slot = PyLong_FromSsize_t(PyList_GET_SIZE(slots)), *held, *entry;
    held = slot == NULL ? NULL : weak(NULL, store);
    entry = held == NULL ? NULL : PyTuple_Pack(4, NewName, AT(store, Char), AT(store, Geometry), slot);
    if (entry == NULL || PyList_Append(slots, held) < 0 || PyList_Append(AT(rec, News), slot) < 0 ||
        PyList_Append(AT(rec, Log), entry) < 0)
        Py_CLEAR(slot);
    else {
        Py_XSETREF(AT(store, Slot), Py_NewRef(slot));
        Py_XSETREF(AT(store, Recorded), Py_NewRef(rec));
        Py_XSETREF(AT(store, Dirty), Py_NewRef(rec));
    }
    Py_XDECREF(held);
    Py_XDECREF(entry);
    return slot;
}

/* The slot and the window, new, of the array that the next entry writes; -1 with an exception. */
static int
written_place(MapCall *call, PyObject *rec, PyObject **slot, PyObject **index)
{
    PyObject *two[2] = {rec, call->out}, *target = PyObject_Vectorcall(TargetOf, two, 2, NULL);
    if (target == NULL)
        return -1;
    *slot = Py_NewRef(PyTuple_GET_ITEM(target, 0));
    *index = Py_NewRef(PyTuple_GET_ITEM(target, 1));
    Py_DECREF(target);
    return 0;
}
