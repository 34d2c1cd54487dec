/* Places in the user's code where NumPy works on large arrays at once; see alone.py.
 *
 * A place is a code object and an instruction in it.  The table is a cache: of three places that fall together the one
 * that was learned first is pushed out.  Included where what it uses is declared. */

#include <time.h>

enum { PLACES = 1024, STRIKES = 3, SEEN = 8 }; /* SEEN: axes of windows that are looked at here */
enum { PATIENCE = 8 };

typedef struct {
    PyObject *code;
    int instruction, strikes;
    int barred, vain; /* is nothing learned here any more, although it would have been so many times? */
    int settled;      /* or has it been so often that nothing is unlearned? */
    Py_ssize_t most; /* elements that NumPy is to work on here; 0 for none */
    Py_ssize_t sure; /* of which it would anyway, so that nothing is recorded instead */
    PyObject *note;  /* the pair of them, as a store has it; NULL as long as nobody wanted it */
    PyObject *chain; /* the chain that it is a step of (op_sequences.h), and which; NULL for none */
    int step;
} Place;

static Place Places[PLACES];
static int Viewing;      /* may NumPy make views of large arrays?  Not where several ranks run the program */
static int Suspended;    /* how often `suspend` was called, less `resume` */

static unsigned long Outright; /* a thread of which NumPy does everything at once, or 0; */
static double Until;           /* and until when */

static double
seconds(void)
{
#ifdef CLOCK_MONOTONIC
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) == 0)
        return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
#endif
    return (double)clock() / CLOCKS_PER_SEC;
}

/* Is there a thread of which NumPy does everything at once? */
static inline int
all_at_once(void)
{
    return Outright && seconds() < Until;
}

#include "memory.h"

/* As `outright`, or has it done so until a moment ago?  That costs no look at the clock. */
static inline int
at_once(void)
{
    return Outright && !Suspended && Outright == PyThread_get_thread_ident();
}

/* Does NumPy do at once whatever this thread asks for? */
static inline int
outright(void)
{
    if (!Outright || Suspended || Outright != PyThread_get_thread_ident())
        return 0;
    if (seconds() < Until)
        return 1;
    Outright = 0;
    keep_no_memory();
    return 0;
}

/* Where a place is or may be put: there, or just behind. */
static Place *
places_of(PyObject *code, int instruction)
{
    uint64_t mixed = ((uint64_t)(uintptr_t)code >> 4) + ((uint64_t)(unsigned)instruction << 40);
    mixed *= 0x9E3779B97F4A7C15u; /* Fibonacci hashing */
    return Places + ((mixed ^ mixed >> 23) >> 40) % (PLACES / 2) * 2;
}

static inline int
is_at(Place *place, PyObject *code, int instruction)
{
    return place->code == code && place->instruction == instruction;
}

/* A place that is known, or NULL. */
static Place *
place_of(PyObject *code, int instruction)
{
    Place *place = places_of(code, instruction);
    return is_at(place, code, instruction) ? place : is_at(place + 1, code, instruction) ? place + 1 : NULL;
}

/* That place, put into the table if it is not there. */
static Place *
place_for(PyObject *code, int instruction)
{
    Place *place = place_of(code, instruction), old;
    if (place != NULL)
        return place;
    place = places_of(code, instruction);
    old = place[1];
    place[1] = place[0];
    *place = (Place){.code = Py_NewRef(code), .instruction = instruction};
    Py_XDECREF(old.code);
    Py_XDECREF(old.note);
    Py_XDECREF(old.chain);
    return place_of(code, instruction); /* what was dropped may have run code */
}

/* The place where the user's code is, if anything was learned there.  Where functions of ours or NumPy's that are
 * written in Python are between, there is nothing to be found. */
static Place *
place_here(void)
{
    PyFrameObject *frame = PyEval_GetFrame();
    PyCodeObject *code;
    Place *place;
    int instruction;
    if (frame == NULL || Suspended)
        return NULL;
    code = PyFrame_GetCode(frame);
    instruction = PyFrame_GetLasti(frame);
    place = place_of((PyObject *)code, instruction);
    Py_DECREF(code); /* the frame holds it */
    return place;
}

/* What has been found out for one operator, all of whose operands ask for it.  It holds from `ask_once` to `ask_again`,
 * between which no other thread runs; and should the garbage collector run code there, what that asks for is computed
 * by NumPy or recorded as if it were the operator's, which is right, too. */
static struct {
    int on, placed, permits; /* the last: as `permitted`, or -1 */
    Place *place;
} Asked;

static inline void
ask_once(void)
{
    Asked.on = 1;
    Asked.placed = 0;
    Asked.permits = -1;
}

static inline void
ask_again(void)
{
    Asked.on = 0;
}

/* As that, if NumPy is to work there at once. */
static Place *
here(void)
{
    Place *place;
    if (Asked.on && Asked.placed)
        place = Asked.place;
    else {
        place = place_here();
        Asked.place = place;
        Asked.placed = 1;
    }
    return place != NULL && place->most ? place : NULL;
}

static int Strict; /* the option `strict`, as it was when `eager_below` was last asked for */

/* The option `eager_below` in force, as `config.current` has it; -1 with an exception. */
static Py_ssize_t
eager_below(void)
{
    static PyObject *known; /* the options that were last asked: they never change */
    static Py_ssize_t below;
    PyObject *options, *process;
    if (PyContextVar_Get(Scoped, NULL, &options) < 0)
        return -1;
    if (options == Py_None) {
        process = PyDict_GetItemWithError(Options, Process);
        Py_SETREF(options, process != NULL && process != Py_None ? Py_NewRef(process) : PyObject_CallNoArgs(Current));
        if (options == NULL)
            return -1;
    }
    if (options == known) {
        Py_DECREF(options);
        return below;
    }
    below = number_in(options, Below);
    Strict = below >= 0 && number_in(options, StrictName) != 0;
    Py_XSETREF(known, below < 0 ? NULL : Py_NewRef(options));
    Py_DECREF(options);
    return below;
}

/* Is this thread a simulated rank, as `simulated` of ranks.py?  No exception is left. */
static int
simulated(void)
{
    static PyObject *current; /* a context variable: this thread's communicator, or None */
    PyObject *module, *comm = NULL;
    int one;
    if (current == NULL) {
        module = PyDict_GetItemWithError(PyImport_GetModuleDict(), Simulation);
        current = module == NULL ? NULL : PyObject_GetAttr(module, CurrentName);
        PyErr_Clear(); /* not yet there: another thread is importing it */
        if (current == NULL)
            return 0;
    }
    one = !PyContextVar_CheckExact(current) || PyContextVar_Get(current, NULL, &comm) < 0 || comm != Py_None;
    PyErr_Clear();
    Py_XDECREF(comm);
    return one;
}

/* May NumPy work on so many elements at this place, as `allowed` of alone.py?  -1 with an exception. */
static int
permitted(Place *place, Py_ssize_t elements)
{
    Py_ssize_t below;
    if (place == NULL || elements > place->most)
        return 0;
    if (Asked.on && Asked.permits >= 0)
        return Asked.permits;
    below = eager_below();
    return Asked.permits = below < 0 ? -1 : below > 0 && !simulated();
}

/* As that, where the user's code is. */
static int
alone_here(Py_ssize_t elements)
{
    return outright() ? 1 : permitted(here(), elements);
}

/* The plain view of a window, new, as `view` of window.py; NULL, without an exception, if it is not of the usual kind:
 * for writing, each axis walking along one of the memory's. */
static PyObject *
window_seen(PyObject *x)
{
    PyObject *index = AT(x, Index), *shape = AT(x, Shape), *store = AT(x, Store), *view;
    Array *mem = (Array *)AT(store, Mem);
    Py_ssize_t sizes[SEEN], strides[SEEN], ndim = PyTuple_GET_SIZE(shape), offset = 0;
    if (NewArray == NULL || index == NULL || !PyTuple_CheckExact(index) || Py_TYPE((PyObject *)mem) != Plain ||
        !is_known(mem->dtype) ||
        AT(x, Readonly) != Py_False || (mem->flags & (WRITEABLE | WARNS)) != WRITEABLE || ndim > SEEN ||
        mem->ndim != PyTuple_GET_SIZE(index))
        return NULL;
    for (Py_ssize_t k = 0; k < ndim; k++) {
        sizes[k] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, k));
        strides[k] = PY_SSIZE_T_MIN; /* not yet known */
        if (sizes[k] <= 0)
            return NULL;
    }
    for (Py_ssize_t k = 0; k < mem->ndim; k++) {
        PyObject *part = PyTuple_GET_ITEM(index, k), *axis = PyTuple_GET_ITEM(part, 2);
        offset += PyLong_AsSsize_t(PyTuple_GET_ITEM(part, 0)) * mem->strides[k];
        if (axis != Py_None) {
            Py_ssize_t *stride = strides + PyLong_AsSsize_t(axis);
            if (*stride != PY_SSIZE_T_MIN)
                return NULL; /* a diagonal */
            *stride = PyLong_AsSsize_t(PyTuple_GET_ITEM(part, 1)) * mem->strides[k];
        }
    }
    for (Py_ssize_t k = 0; k < ndim; k++)
        if (strides[k] == PY_SSIZE_T_MIN && sizes[k] > 1)
            return NULL; /* broadcast */
        else if (strides[k] == PY_SSIZE_T_MIN)
            strides[k] = 0;
    view = NewArray(Plain, Py_NewRef((PyObject *)mem->dtype), (int)ndim, sizes, strides, mem->data + offset, WRITEABLE,
                    NULL);
    if (view != NULL && SetBase(view, Py_NewRef((PyObject *)mem)) < 0)
        Py_CLEAR(view);
    return view;
}

static int computed(PyObject *x);

/* The plain view of a large array on which nothing is pending but what NumPy's loops do at once, or NULL, without an
 * exception; borrowed. */
static PyObject *
view_of(PyObject *x)
{
    PyObject *store, *view, *made;
    if (!clean(x) && !computed(x))
        return NULL;
    store = AT(x, Store);
    view = AT(x, View);
    if (view != NULL && Py_TYPE(view) == Plain)
        return view;
    if (store == NULL || AT(store, Mem) == Py_None)
        return NULL;
    if ((view = window_seen(x)) != NULL) {
        Py_XSETREF(AT(x, View), view);
        return view;
    }
    PyErr_Clear();
    made = PyObject_CallMethod(x, "_plain_view", NULL);
    PyErr_Clear(); /* the slow way says it again */
    Py_XDECREF(made);
    view = AT(x, View);
    return made != NULL && view != NULL && Py_TYPE(view) == Plain ? view : NULL;
}

/* Do kernels work on the memory of a large array?  Else nothing is recorded, and the report says so. */
static inline int
compiles(PyObject *x)
{
    return AT(x, Store) == NULL || PyUnicode_GET_LENGTH(AT(AT(x, Store), Char)) > 0;
}

/* As `view_of`, if views that NumPy makes of it can be arrays of ours; not where several ranks are simulated. */
static PyObject *
viewable(PyObject *x)
{
    PyObject *view;
    if (!Viewing || !is_large(x) || !clean(x) || !compiles(x) || simulated() || (view = view_of(x)) == NULL ||
        !is_known(((Array *)view)->dtype) || !(((Array *)view)->flags & ALIGNED))
        return NULL;
    return view;
}

/* That view, if NumPy is to work on it where the user's code is; of what does not compile, where that was learned. */
static PyObject *
alone(PyObject *x)
{
    PyObject *view;
    Place *place = NULL;
    int found, all = outright();
    if (AT(x, Small) != Py_None || (!all && (place = here()) == NULL) ||
        (!compiles(x) && (all || !place->sure)) || (view = view_of(x)) == NULL ||
        (!compiles(x) && strchr("MmSU", ((Array *)view)->dtype->kind) == NULL))
        return NULL;
    found = all ? 1 : permitted(place, elements_of(view));
    if (found < 0)
        PyErr_Clear();
    return found > 0 && (!Strict || compiles(x)) ? view : NULL;
}

/* Note who made what a large array holds; nothing is lost where that fails. */
static void
note_place(PyObject *x)
{
    Place *place;
    PyObject *store;
    if (!is_large(x) || (place = here()) == NULL)
        return;
    store = AT(x, Store) != NULL ? AT(x, Store) : viewed_store(x);
    if (place->note == NULL && (place->note = Py_BuildValue("Oi", place->code, place->instruction)) == NULL)
        PyErr_Clear();
    else if (store == NULL)
        Py_XSETREF(AT(x, Origin), Py_NewRef(place->note));
    else
        Py_XSETREF(AT(store, Alone), Py_NewRef(place->note));
}

/* learn(code, instruction, elements, sure) */
static PyObject *
learn_place(PyObject *module, PyObject *args)
{
    PyObject *code;
    Py_ssize_t elements;
    int instruction, sure;
    Place *place;
    if (!PyArg_ParseTuple(args, "O!inp", &PyCode_Type, &code, &instruction, &elements, &sure))
        return NULL;
    place = place_for(code, instruction);
    if (place == NULL)
        Py_RETURN_NONE;
    if (sure && place->sure < elements)
        place->sure = elements;
    /* NumPy is sooner even where what wants the result is recorded with it: that may be a kernel's by itself. */
    if (!sure && place->barred && ++place->vain >= PATIENCE) {
        place->barred = 0;
        place->settled = 1;
    }
    if ((sure || !place->barred) && place->most < elements)
        place->most = elements;
    Py_RETURN_NONE;
}

/* strike(code, instruction, bar) */
static PyObject *
strike_place(PyObject *module, PyObject *args)
{
    PyObject *code;
    int instruction, bar;
    Place *place;
    if (!PyArg_ParseTuple(args, "O!ip", &PyCode_Type, &code, &instruction, &bar))
        return NULL;
    place = place_of(code, instruction);
    if (place != NULL && !place->settled && (bar || place->strikes < STRIKES)) {
        place->strikes += !bar;
        place->barred |= bar;
        place->most = place->sure;
    }
    Py_RETURN_NONE;
}

/* begin_outright(seconds): for so long NumPy does at once what this thread asks for; True, or False if a thread, this
 * one or another, is in such a time already. */
static PyObject *
begin_outright(PyObject *module, PyObject *length)
{
    double given = PyFloat_AsDouble(length);
    if (given == -1 && PyErr_Occurred())
        return NULL;
    outright(); /* a time of this thread's that has passed ends */
    if (all_at_once())
        Py_RETURN_FALSE;
    Outright = PyThread_get_thread_ident();
    Until = seconds() + given;
    keep_memory();
    Py_RETURN_TRUE;
}

/* end_outright(): this thread's time is over. */
static PyObject *
end_outright(PyObject *module, PyObject *unused)
{
    if (outright())
        Outright = 0;
    keep_no_memory();
    Py_RETURN_NONE;
}

/* expire_outright(): that of whatever thread is over as soon as it looks. */
static PyObject *
expire_outright(PyObject *module, PyObject *unused)
{
    Until = 0;
    Py_RETURN_NONE;
}

/* is_outright(): is this thread in such a time? */
static PyObject *
is_outright(PyObject *module, PyObject *unused)
{
    return PyBool_FromLong(outright());
}

/* suspend(more): 1 or -1 */
static PyObject *
suspend_places(PyObject *module, PyObject *more)
{
    long change = PyLong_AsLong(more);
    if (change == -1 && PyErr_Occurred())
        return NULL;
    Suspended += (int)change;
    Py_RETURN_NONE;
}
