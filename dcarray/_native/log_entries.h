/* Entries of the log for element-wise calls: their operands, results and call sites (dcarray/recording/log.py). */

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
