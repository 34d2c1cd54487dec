/* Short recordings that come again and again, from their operators straight to their kernels; see op_sequences.py.
 *
 * Where one operator after the other does what a known op sequence does, on arrays of its kind, nothing is recorded:
 * what is asked for is noted in a deferred sequence.  It is pending on the memory that it reads and makes, like a
 * recording (`Pending` in store.py), so whoever wants something else than its last result has it recorded after all. */

#include <float.h>
#include <math.h>

enum { STEPS = 8, ARRAYS = 6, NUMBERS = 6 };

typedef struct {
    PyObject *ufunc, *dtype; /* the latter that of the result */
    char kinds[2];           /* of the operands: a(rray), n(umber) or r(esult); 0 for none */
    int which[2];            /* and which of these */
    Inner *code;             /* the ufunc's loop, where NumPy's loops do the steps */
    void *data;
    int part;                    /* which of the blocks it makes */
    Py_ssize_t widths[2], width; /* bytes of an element of the operands, and of the result */
} Operation;

typedef struct {
    PyObject_HEAD
    int steps, arrays, numbers, strikes;
    int mask;    /* the floating-point exceptions that matter */
    int blocks;  /* do NumPy's loops do the steps, block by block, on arrays of any shape? */
    double zero; /* what NumPy begins a sum with */
    double until; /* when it is over, which all such are as soon as `expire_sequences` is called; 0 if it stays */
    unsigned expired;
    Operation operations[STEPS];
    char letters[ARRAYS], loops[NUMBERS]; /* the dtypes of the arrays, and those of the numbers in their loops */
    PyObject *shape, *size, *options, *state; /* the size is the largest one, with blocks */
    PyObject *run;    /* a function of addresses: the exceptions that were raised; None with blocks */
    PyObject *record; /* and one that does it the long way */
    Py_ssize_t lengths[SEEN];
} OpSequence;

typedef struct Deferred {
    PyObject_HEAD
    OpSequence *sequence;
    int count, done, folded; /* the last: has something been made of it before it was computed? */
    PyObject *shape;         /* NULL as long as it is not known */
    Py_ssize_t size;
    unsigned long thread;
    PyObject *stores[ARRAYS], *numbers[NUMBERS], *results[STEPS]; /* the last: weak references to stores */
    Py_ssize_t rows[ARRAYS], skipped[ARRAYS]; /* which row of its store an array begins with, and the bytes before that */
    struct PendingRead *read;
    struct Deferred *before, *after; /* of all that are pending */
} Deferred;

/* What is pending on memory that a deferred sequence reads; the deferred sequence holds that memory, so it must not be
 * held by it. */
typedef struct PendingRead {
    PyObject_HEAD
    Deferred *owner; /* NULL when it is done, or nobody wants it any more */
} PendingRead;

static PyTypeObject OpSequenceType, DeferredType, PendingReadType;
static Deferred *LatestDeferred;       /* the one that was last added to; borrowed, like those that are pending */
static Deferred *AllDeferred;
static PyObject *ErrorState; /* a context variable of NumPy's */
static unsigned Expirations;     /* how often `expire_sequences` was called */
static PyObject *Lock;       /* whoever records or runs holds it; NULL as long as nobody has */
static unsigned long Recorder; /* the only thread that has, or 0 */

/* note_recorder(lock): this thread is about to record, or to run what is recorded, for which it will hold this lock. */
static PyObject *
note_recorder(PyObject *module, PyObject *lock)
{
    unsigned long me = PyThread_get_thread_ident();
    if (Lock == NULL)
        Recorder = me;
    else if (Recorder != me)
        Recorder = 0;
    Py_XSETREF(Lock, Py_NewRef(lock));
    Py_RETURN_NONE;
}

/* Is another thread recording or running?  What is pending on memory that it has begun to look at must not change. */
static int
another_records(void)
{
    PyObject *got, *free = NULL;
    int taken;
    if (Lock == NULL || Recorder == PyThread_get_thread_ident())
        return 0;
    got = PyObject_CallMethod(Lock, "acquire", "O", Py_False);
    taken = got == Py_True;
    if (taken)
        free = PyObject_CallMethod(Lock, "release", NULL);
    Py_XDECREF(got);
    Py_XDECREF(free);
    PyErr_Clear();
    return !taken;
}

/* A deferred sequence is over: what it has read is nobody's concern any more. */
static void
finish_deferred(Deferred *s)
{
    if (!s->done) {
        *(s->before == NULL ? &AllDeferred : &s->before->after) = s->after;
        if (s->after != NULL)
            s->after->before = s->before;
    }
    s->done = 1;
    if (LatestDeferred == s)
        LatestDeferred = NULL;
    if (s->read != NULL)
        s->read->owner = NULL;
    for (int k = 0; k < ARRAYS; k++) {
        PyObject *store = s->stores[k];
        s->stores[k] = NULL;
        if (store != NULL && AT(store, Used) == (PyObject *)s->read)
            Py_XSETREF(AT(store, Used), Py_NewRef(Py_None));
        Py_XDECREF(store);
    }
}

static void
drop_deferred(Deferred *s)
{
    finish_deferred(s);
    for (int k = 0; k < NUMBERS; k++)
        Py_CLEAR(s->numbers[k]);
    for (int k = 0; k < STEPS; k++)
        Py_CLEAR(s->results[k]);
    Py_CLEAR(s->read);
    Py_CLEAR(s->shape);
    Py_CLEAR(s->sequence);
    PyObject_Free(s);
}

static void
drop_read(PyObject *m)
{
    PyObject_Free(m);
}

static void
drop_sequence(OpSequence *c)
{
    for (int k = 0; k < STEPS; k++) {
        Py_CLEAR(c->operations[k].ufunc);
        Py_CLEAR(c->operations[k].dtype);
    }
    Py_CLEAR(c->shape);
    Py_CLEAR(c->size);
    Py_CLEAR(c->options);
    Py_CLEAR(c->state);
    Py_CLEAR(c->run);
    Py_CLEAR(c->record);
    PyObject_Free(c);
}

/* The store of a result, or NULL if nobody has it any more; borrowed. */
static PyObject *
result_of(Deferred *s, int k)
{
    PyObject *store = s->results[k] == NULL ? NULL : PyWeakref_GetObject(s->results[k]);
    return store == Py_None ? NULL : store;
}

#include "blocked_sequences.h"

/* ---- running ----------------------------------------------------------------------------------- */
/* Run a deferred sequence by its kernel, if its last result alone is wanted: 1; 0 if that is not so or something is in
 * its way, -1 with an exception. */
static int
deferred_run(Deferred *s)
{
    OpSequence *c = s->sequence;
    PyObject *store = s->count == c->steps ? result_of(s, c->steps - 1) : NULL, *mem, *addresses, *at = NULL, *raised;
    union {
        double real;
        float single;
        int64_t whole;
    } numbers[NUMBERS];
    Py_ssize_t lengths[SEEN];
    long flags;
    if (s->done || store == NULL)
        return s->done;
    for (int k = 0; k < c->steps - 1; k++)
        if (result_of(s, k) != NULL)
            return 0;
    for (int k = 0; k < c->numbers; k++)
        if (c->loops[k] == 'l')
            numbers[k].whole = PyLong_AsLongLong(s->numbers[k]);
        else {
            double value = PyFloat_AsDouble(s->numbers[k]);
            if (c->loops[k] == 'd')
                numbers[k].real = value;
            else
                numbers[k].single = (float)value;
        }
    for (int k = 0; k < PyTuple_GET_SIZE(s->shape); k++)
        lengths[k] = PyLong_AsSsize_t(PyTuple_GET_ITEM(s->shape, k));
    Py_INCREF(s);
    Py_INCREF(store);
    addresses = PyList_New(c->arrays + 1 + c->numbers);
    mem = NewArray(PlainClass, Py_NewRef(c->operations[c->steps - 1].dtype), (int)PyTuple_GET_SIZE(s->shape), lengths, NULL, NULL,
                   0, NULL);
    if (mem != NULL)
        at = PyLong_FromVoidPtr(((Array *)mem)->data);
    for (int k = 0; at != NULL && addresses != NULL && k < PyList_GET_SIZE(addresses); k++) {
        PyObject *one = k < c->arrays    ? Py_NewRef(AT(s->stores[k], Address))
                        : k == c->arrays ? Py_NewRef(at)
                                         : PyLong_FromVoidPtr(numbers + (k - c->arrays - 1));
        PyList_SET_ITEM(addresses, k, one);
    }
    if (at == NULL || PyErr_Occurred())
        raised = NULL;
    else if (c->blocks) {
        c->strikes += s->folded; /* what it gave might have been made of the array */
        raised = PyLong_FromLong(run_blocks(s, ((Array *)mem)->data) ? 0 : -1);
    }
    else
        raised = PyObject_CallOneArg(c->run, addresses);
    flags = raised == NULL ? -1 : PyLong_AsLong(raised);
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_Clear(); /* the long way says it again */
        flags = -1;
    }
    if (flags >= 0 && !(flags & c->mask) && !s->done) { /* another thread may have had it recorded meanwhile */
        Py_XSETREF(AT(store, Mem), Py_NewRef(mem));
        Py_XSETREF(AT(store, Address), Py_NewRef(at));
        finish_deferred(s);
        Py_XSETREF(AT(store, Dirty), Py_NewRef(Py_None));
    }
    Py_XDECREF(raised);
    Py_XDECREF(at);
    Py_XDECREF(mem);
    Py_XDECREF(addresses);
    Py_DECREF(store);
    flags = PyErr_Occurred() ? -1 : s->done;
    Py_DECREF(s);
    return (int)flags;
}

/* Have a deferred sequence recorded, by a thread that holds the lock, and the recording run. */
static int
deferred_record(Deferred *s)
{
    OpSequence *c = s->sequence;
    PyObject *lists = Py_BuildValue("O[][][][]", s->shape == NULL ? Py_None : s->shape), *done = NULL;
    int failed = lists == NULL; /* shape, stores, rows, numbers and results */
    for (int k = 0; k < ARRAYS && !failed; k++) {
        PyObject *row = s->stores[k] == NULL ? NULL : PyLong_FromSsize_t(s->rows[k]);
        if (s->stores[k] != NULL)
            failed = row == NULL || PyList_Append(PyTuple_GET_ITEM(lists, 1), s->stores[k]) < 0 ||
                     PyList_Append(PyTuple_GET_ITEM(lists, 2), row) < 0;
        Py_XDECREF(row);
    }
    for (int k = 0; k < NUMBERS && !failed; k++)
        failed = s->numbers[k] != NULL && PyList_Append(PyTuple_GET_ITEM(lists, 3), s->numbers[k]) < 0;
    for (int k = 0; k < s->count && !failed; k++)
        failed = PyList_Append(PyTuple_GET_ITEM(lists, 4), result_of(s, k) == NULL ? Py_None : result_of(s, k)) < 0;
    if (!failed) {
        finish_deferred(s);
        done = PyObject_CallObject(c->record, lists);
    }
    Py_XDECREF(lists);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* Have a deferred sequence run, or recorded if that is not the way; `writing`: for one who goes on to record, or writes
 * what it reads. */
static int
run_or_record(Deferred *s, int writing)
{
    int found = deferred_run(s), failed = 0;
    PyObject *held, *type, *value, *trace;
    if (found < 0)
        return -1;
    s->sequence->strikes += !found || writing;
    if (found)
        return 0;
    held = PyObject_CallMethod(Lock, "acquire", NULL); /* there is one: a recording has made the op sequence */
    if (held == NULL)
        return -1;
    if (!s->done && s->count == 0)
        finish_deferred(s); /* its first operand has just been taken: there is nothing to do */
    else if (!s->done) /* by another thread meanwhile */
        failed = deferred_record(s);
    PyErr_Fetch(&type, &value, &trace);
    Py_DECREF(held);
    held = PyObject_CallMethod(Lock, "release", NULL);
    Py_XDECREF(held);
    PyErr_Restore(type, value, trace);
    return failed;
}

/* run, materialise(head, writing=False) of `Pending` */
static PyObject *
pending_run(PyObject *self, PyObject *args, PyObject *named)
{
    static char *names[] = {"head", "writing", NULL};
    PyObject *head;
    Deferred *s = Py_TYPE(self) == &PendingReadType ? ((PendingRead *)self)->owner : (Deferred *)self;
    int writing = 0, failed;
    if (!PyArg_ParseTupleAndKeywords(args, named, "O|p", names, &head, &writing))
        return NULL;
    if (s == NULL || s->done)
        Py_RETURN_NONE;
    Py_INCREF(s);
    failed = run_or_record(s, writing);
    Py_DECREF(s);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *
pending_check(PyObject *self, PyObject *unused)
{
    Py_RETURN_NONE;
}

static PyObject *
pending_done(PyObject *self, void *closure)
{
    Deferred *s = Py_TYPE(self) == &PendingReadType ? ((PendingRead *)self)->owner : (Deferred *)self;
    return PyBool_FromLong(s == NULL || s->done);
}

static PyMethodDef pending_methods[] = {
    {"run", (PyCFunction)(void (*)(void))pending_run, METH_VARARGS | METH_KEYWORDS, NULL},
    {"materialise", (PyCFunction)(void (*)(void))pending_run, METH_VARARGS | METH_KEYWORDS, NULL},
    {"check", pending_check, METH_NOARGS, NULL},
    {NULL}};
static PyGetSetDef pending_attributes[] = {{"done", pending_done, NULL, NULL, NULL}, {NULL}};

static PyTypeObject OpSequenceType = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dcarray._native.extension.OpSequence",
                                 .tp_basicsize = sizeof(OpSequence),
                                 .tp_dealloc = (destructor)drop_sequence,
                                 .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION};
static PyTypeObject DeferredType = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dcarray._native.extension.Deferred",
                                  .tp_basicsize = sizeof(Deferred),
                                  .tp_dealloc = (destructor)drop_deferred,
                                  .tp_methods = pending_methods,
                                  .tp_getset = pending_attributes,
                                  .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION};
static PyTypeObject PendingReadType = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dcarray._native.extension.PendingRead",
                                .tp_basicsize = sizeof(PendingRead),
                                .tp_dealloc = drop_read,
                                .tp_methods = pending_methods,
                                .tp_getset = pending_attributes,
                                .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION};

/* The deferred sequence that the last operation made a large array for, if it is still pending and its result, or NULL;
 * borrowed. */
static inline Deferred *
deferred_of(PyObject *x)
{
    PyObject *store = is_large(x) ? AT(x, Store) : NULL, *dirty = store == NULL ? NULL : AT(store, Dirty);
    return dirty != NULL && Py_TYPE(dirty) == &DeferredType ? (Deferred *)dirty : NULL;
}

/* Have what op sequences of NumPy's loops are to do with the memory of a large array, to make it or reading it, done:
 * is nothing pending on it then?  No exception is left. */
static int
compute_pending(PyObject *x)
{
    PyObject *store = AT(x, Store) != NULL ? AT(x, Store) : viewed_store(x), *head = head_of(x);
    for (int used = 0; used < 2; used++) {
        PyObject *pending = head == NULL ? NULL : AT(head, used ? Used : Dirty);
        Deferred *s = pending == NULL                     ? NULL
                    : Py_TYPE(pending) == &DeferredType   ? (Deferred *)pending
                    : Py_TYPE(pending) == &PendingReadType     ? ((PendingRead *)pending)->owner
                                                        : NULL;
        if (s == NULL || s->done || !s->sequence->blocks)
            continue;
        if (deferred_run(s) <= 0) {
            PyErr_Clear(); /* the slow way says it again */
            return 0;
        }
        if (!used && head == store && AT(x, Index) == Py_None && AT(x, View) == Py_None && AT(x, Readonly) == Py_False)
            Py_XSETREF(AT(x, View), Py_NewRef(AT(store, Mem)));
    }
    return is_idle(x);
}
