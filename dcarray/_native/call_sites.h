/* The table of call sites, at which NumPy works on large arrays at once after they are promoted
 * (dcarray/tiering/call_sites.py), and eager periods.
 *
 * A call site is a code object and an instruction in it.  The table is a cache: of three sites that fall together the
 * one that was entered first is pushed out. */

#include <time.h>

enum { SITES = 1024, SEEN = 8 }; /* SEEN: axes of windows that are looked at here */

typedef struct {
    PyObject *code;
    int instruction;
    int state;        /* DEOPTIMISED: it is blocked, for what it made was an operand of a region's kernels */
    int strikes;      /* how often it was demoted */
    int blocked_hits; /* promotions that were refused since it is blocked */
    int pinned;       /* after so many it is active for good */
    Py_ssize_t limit;    /* elements that NumPy is to work on here; 0 for none */
    Py_ssize_t always;   /* of which it would anyway, so that nothing is recorded instead */
    PyObject *note;      /* the code and the instruction as a store has them; NULL as long as nobody wanted them */
} CallSite;

static CallSite CallSites[SITES];
static int MayView;   /* may NumPy make views of large arrays?  Not where several ranks run the program */
static int Suspended; /* how often `suspend` was called, less `resume` */

static unsigned long EagerThread; /* the thread in an eager period, of which NumPy does everything, or 0; */
static double EagerUntil;         /* and until when */

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

static Py_ssize_t MostAtOnce = MOST_AT_ONCE; /* bytes; more for what blocks do not take less time for */

/* Is a thread in an eager period? */
static inline int
any_eager_period(void)
{
    return EagerThread && seconds() < EagerUntil;
}

/* As `in_eager_period`, or was it until a moment ago?  That costs no look at the clock. */
static inline int
lately_eager(void)
{
    return EagerThread && !Suspended && EagerThread == PyThread_get_thread_ident();
}

/* Is this thread in an eager period: does NumPy do at once whatever it asks for? */
static inline int
in_eager_period(void)
{
    if (!EagerThread || Suspended || EagerThread != PyThread_get_thread_ident())
        return 0;
    if (seconds() < EagerUntil)
        return 1;
    EagerThread = 0;
    return 0;
}

/* Where a call site is or may be put: there, or just behind. */
static CallSite *
site_bucket(PyObject *code, int instruction)
{
    uint64_t mixed = ((uint64_t)(uintptr_t)code >> 4) + ((uint64_t)(unsigned)instruction << 40);
    mixed *= 0x9E3779B97F4A7C15u; /* Fibonacci hashing */
    return CallSites + ((mixed ^ mixed >> 23) >> 40) % (SITES / 2) * 2;
}

static inline int
is_at(CallSite *site, PyObject *code, int instruction)
{
    return site->code == code && site->instruction == instruction;
}

/* A known call site, or NULL. */
static CallSite *
site_of(PyObject *code, int instruction)
{
    CallSite *site = site_bucket(code, instruction);
    return is_at(site, code, instruction) ? site : is_at(site + 1, code, instruction) ? site + 1 : NULL;
}

/* That site, put into the table if it is not there. */
static CallSite *
site_for(PyObject *code, int instruction)
{
    CallSite *site = site_of(code, instruction), old;
    if (site != NULL)
        return site;
    site = site_bucket(code, instruction);
    old = site[1];
    site[1] = site[0];
    *site = (CallSite){.code = Py_NewRef(code), .instruction = instruction};
    Py_XDECREF(old.code);
    Py_XDECREF(old.note);
    return site_of(code, instruction); /* what was dropped may have run code */
}

/* The call site where the user's code is, if it is in the table.  Where dcarray's functions or NumPy's that are
 * written in Python are between, there is nothing to be found. */
static CallSite *
site_here(void)
{
    PyFrameObject *frame = PyEval_GetFrame();
    PyCodeObject *code;
    CallSite *site;
    int instruction;
    if (frame == NULL || Suspended)
        return NULL;
    code = PyFrame_GetCode(frame);
    instruction = PyFrame_GetLasti(frame);
    site = site_of((PyObject *)code, instruction);
    Py_DECREF(code); /* the frame holds it */
    return site;
}

/* What has been found out for one operator, all of whose operands ask for it.  It holds from `ask_once` to `ask_again`,
 * between which no other thread runs; and should the garbage collector run code there, what that asks for is computed
 * by NumPy or recorded as if it were the operator's, which is right, too. */
static struct {
    int on, found, permits; /* the last: as `permits`, or -1 */
    CallSite *site;
} Decided;

static inline void
decide_once(void)
{
    Decided.on = 1;
    Decided.found = 0;
    Decided.permits = -1;
}

static inline void
forget_decision(void)
{
    Decided.on = 0;
}

/* The call site of the user's code if it is promoted, else NULL. */
static CallSite *
eager_site_here(void)
{
    CallSite *site;
    if (Decided.on && Decided.found)
        site = Decided.site;
    else {
        site = site_here();
        Decided.site = site;
        Decided.found = 1;
    }
    return site != NULL && site->limit ? site : NULL;
}

static int Strict;   /* the option `strict`, as it was when `eager_below` was last asked for */
static int OnDevice; /* likewise: does the option `device` put new arrays on another one than the CPU? */

/* Read these of options that were not asked last; returns `eager_below`, or -1 with an exception.  Apart, so that the
 * usual way stays short. */
static Py_ssize_t __attribute__((noinline))
read_options(PyObject *options)
{
    Py_ssize_t below = number_in(options, Below);
    PyObject *device = below < 0 ? NULL : PyObject_GetAttr(options, DeviceName);
    OnDevice = device != NULL && PyUnicode_Check(device) && PyUnicode_CompareWithASCIIString(device, "cpu") != 0;
    Strict = below >= 0 && number_in(options, StrictName) != 0;
    Py_XDECREF(device);
    return below;
}

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
    below = read_options(options);
    Py_XSETREF(known, below < 0 ? NULL : Py_NewRef(options));
    Py_DECREF(options);
    return below;
}

/* Are new arrays put on another device than the CPU? */
static inline int
made_on_device(void)
{
    if (eager_below() < 0)
        PyErr_Clear();
    return OnDevice;
}

/* Is this thread a simulated rank, as `simulated` of dcarray/core/processes.py?  No exception is left. */
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

/* Whether NumPy works on so many elements at a call site; -1 with an exception. */
static int
permits(CallSite *site, Py_ssize_t elements)
{
    Py_ssize_t below;
    if (site == NULL || elements > site->limit)
        return 0;
    if (Decided.on && Decided.permits >= 0)
        return Decided.permits;
    below = eager_below();
    return Decided.permits = below < 0 ? -1 : below > 0 && !simulated();
}

/* Whether NumPy works on so many elements of so many bytes where the user's code is; -1 with an exception. */
static int
eager_here(Py_ssize_t elements, Py_ssize_t width)
{
    return elements <= MostAtOnce / width && in_eager_period() ? 1 : permits(eager_site_here(), elements);
}

/* The plain view of a window, new, as `view` of window.py; NULL, without an exception, if it is not of the usual kind:
 * for writing, each axis walking along one of the memory's. */
static PyObject *
view_of_window(PyObject *x)
{
    PyObject *index = AT(x, Index), *shape = AT(x, Shape), *store = AT(x, Store), *view;
    Array *mem = (Array *)AT(store, Mem);
    Py_ssize_t sizes[SEEN], strides[SEEN], ndim = PyTuple_GET_SIZE(shape), offset = 0;
    if (NewArray == NULL || index == NULL || !PyTuple_CheckExact(index) || Py_TYPE((PyObject *)mem) != PlainClass ||
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
    view = NewArray(PlainClass, Py_NewRef((PyObject *)mem->dtype), (int)ndim, sizes, strides, mem->data + offset, WRITEABLE,
                    NULL);
    if (view != NULL && SetBase(view, Py_NewRef((PyObject *)mem)) < 0)
        Py_CLEAR(view);
    return view;
}

/* The plain view of a large array on which nothing is pending, or NULL, without an exception; borrowed. */
static PyObject *
view_of(PyObject *x)
{
    PyObject *store, *view, *made;
    if (!is_idle(x))
        return NULL;
    store = AT(x, Store);
    view = AT(x, View);
    if (view != NULL && Py_TYPE(view) == PlainClass)
        return view;
    if (store == NULL || AT(store, Mem) == Py_None)
        return NULL;
    if ((view = view_of_window(x)) != NULL) {
        Py_XSETREF(AT(x, View), view);
        return view;
    }
    PyErr_Clear();
    made = PyObject_CallMethod(x, "_plain_view", NULL);
    PyErr_Clear(); /* the slow way says it again */
    Py_XDECREF(made);
    view = AT(x, View);
    return made != NULL && view != NULL && Py_TYPE(view) == PlainClass ? view : NULL;
}

/* Do kernels work on the memory of a large array?  Else nothing is recorded, and the report says so. */
static inline int
is_compiled(PyObject *x)
{
    return AT(x, Store) == NULL || PyUnicode_GET_LENGTH(AT(AT(x, Store), Char)) > 0;
}

/* As `view_of`, if views that NumPy makes of it can be wrapped arrays; not where several ranks are simulated. */
static PyObject *
viewable(PyObject *x)
{
    PyObject *view;
    if (!MayView || !is_large(x) || !is_idle(x) || !is_compiled(x) || simulated() || (view = view_of(x)) == NULL ||
        !is_known(((Array *)view)->dtype) || !(((Array *)view)->flags & ALIGNED))
        return NULL;
    return view;
}

/* That view, if NumPy is to work on it where the user's code is; of what does not compile, where that was learned. */
static PyObject *
eager_view(PyObject *x)
{
    PyObject *view;
    CallSite *site = NULL;
    int found, all = in_eager_period();
    if (AT(x, Small) != Py_None || (!all && (site = eager_site_here()) == NULL) ||
        (!is_compiled(x) && (all || !site->always)) || (view = view_of(x)) == NULL ||
        (!is_compiled(x) && strchr("MmSU", ((Array *)view)->dtype->kind) == NULL))
        return NULL;
    if (all && elements_of(view) > MostAtOnce / item_width(view)) { /* unless this place of the program is known */
        all = 0;
        site = eager_site_here();
    }
    found = all ? 1 : permits(site, elements_of(view));
    if (found < 0)
        PyErr_Clear();
    return found > 0 && (!Strict || is_compiled(x)) ? view : NULL;
}

/* Note who made what a large array holds; nothing is lost where that fails. */
static void
note_site(PyObject *x)
{
    CallSite *site;
    PyObject *store;
    if (!is_large(x) || (site = eager_site_here()) == NULL)
        return;
    store = AT(x, Store) != NULL ? AT(x, Store) : viewed_store(x);
    if (site->note == NULL && (site->note = Py_BuildValue("Oi", site->code, site->instruction)) == NULL)
        PyErr_Clear();
    else if (store == NULL)
        Py_XSETREF(AT(x, Origin), Py_NewRef(site->note));
    else
        Py_XSETREF(AT(store, EagerSite), Py_NewRef(site->note));
}

/* promote(code, instruction, elements, always): NumPy works at once on up to so many elements here. */
static PyObject *
promote_site(PyObject *module, PyObject *args)
{
    PyObject *code;
    Py_ssize_t elements;
    int instruction, always;
    CallSite *site;
    if (!PyArg_ParseTuple(args, "O!inp", &PyCode_Type, &code, &instruction, &elements, &always))
        return NULL;
    site = site_for(code, instruction);
    if (site == NULL)
        Py_RETURN_NONE;
    if (always && site->always < elements)
        site->always = elements;
    /* NumPy is sooner even where what wants the result is recorded with it: that may be a kernel's by itself. */
    if (!always && site->state == DEOPTIMISED && ++site->blocked_hits >= BLOCKED_HITS)
        site->pinned = 1;
    if (!always && (site->state != DEOPTIMISED || site->pinned))
        site->state = ACTIVE;
    if ((always || site->state == ACTIVE) && site->limit < elements)
        site->limit = elements;
    Py_RETURN_NONE;
}

/* demote(code, instruction, block): what was made here at once is an operand of something recorded, or even, to
 * `block` it, of something that runs as a region. */
static PyObject *
demote_site(PyObject *module, PyObject *args)
{
    PyObject *code;
    int instruction, block;
    CallSite *site;
    if (!PyArg_ParseTuple(args, "O!ip", &PyCode_Type, &code, &instruction, &block))
        return NULL;
    site = site_of(code, instruction);
    if (site != NULL && !site->pinned && (block || site->strikes < STRIKES)) {
        site->strikes += !block;
        site->state = block || site->state == DEOPTIMISED ? DEOPTIMISED : OBSERVED;
        site->limit = site->always;
    }
    Py_RETURN_NONE;
}

/* begin_eager_period(seconds): for so long NumPy does at once what this thread asks for; True, or False if a thread,
 * this one or another, is in such a time already, or if everything is to be recorded. */
static PyObject *
begin_eager_period(PyObject *module, PyObject *length)
{
    double given = PyFloat_AsDouble(length);
    if (given == -1 && PyErr_Occurred())
        return NULL;
    in_eager_period(); /* a time of this thread's that has passed ends */
    if (Suspended || any_eager_period())
        Py_RETURN_FALSE;
    EagerThread = PyThread_get_thread_ident();
    EagerUntil = seconds() + given;
    Py_RETURN_TRUE;
}

/* end_eager_period(): this thread's time is over. */
static PyObject *
end_eager_period(PyObject *module, PyObject *unused)
{
    if (in_eager_period())
        EagerThread = 0;
    Py_RETURN_NONE;
}

/* expire_eager_period(): that of whatever thread is over as soon as it looks. */
static PyObject *
expire_eager_period(PyObject *module, PyObject *unused)
{
    EagerUntil = 0;
    Py_RETURN_NONE;
}

/* in_eager_period(): is this thread in such a time? */
static PyObject *
eager_period_state(PyObject *module, PyObject *unused)
{
    return PyBool_FromLong(in_eager_period());
}

/* suspend(change): add 1 or -1 to the number of reasons for which no call site counts as promoted. */
static PyObject *
suspend_sites(PyObject *module, PyObject *more)
{
    long change = PyLong_AsLong(more);
    if (change == -1 && PyErr_Occurred())
        return NULL;
    Suspended += (int)change;
    Py_RETURN_NONE;
}
