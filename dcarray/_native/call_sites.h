/* The table of call sites, at which NumPy works on large arrays at once after they are promoted
 * (dcarray/tiering/call_sites.py).
 *
 * A call site is a code object and an instruction in it.  The table is a cache: of three sites that fall together the
 * one that was entered first is pushed out. */
enum { SITES = 1024 };

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
static int Suspended; /* how often `suspend` was called, less `resume` */

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

/* What is known of the place in the user's code that asks for something: it is looked up once, for all operands. */
typedef struct {
    int found, asked;
    int permitted;  /* if `asked`: do the options and the ranks let NumPy work at promoted call sites? */
    CallSite *site; /* if `found`: the call site there if it is promoted, or NULL */
} Place;

/* A place of which nothing is known yet. */
#define HERE (&(Place){0})

/* The call site of the user's code if it is promoted, else NULL. */
static CallSite *
promoted_site(Place *place)
{
    if (!place->found) {
        CallSite *site = site_here();
        place->site = site != NULL && site->limit ? site : NULL;
        place->found = 1;
    }
    return place->site;
}

/* Whether NumPy works on so many elements at a promoted call site; -1 with an exception. */
static int
permits(Place *place, Py_ssize_t elements)
{
    CallSite *site = promoted_site(place);
    Py_ssize_t below;
    if (site == NULL || elements > site->limit)
        return 0;
    if (!place->asked) {
        if ((below = eager_below()) < 0)
            return -1;
        place->permitted = below > 0 && !simulated();
        place->asked = 1;
    }
    return place->permitted;
}

/* Note who made what a large array holds; nothing is lost where that fails. */
static void
note_site(PyObject *x)
{
    CallSite *site;
    PyObject *store;
    if (!is_large(x) || (site = promoted_site(HERE)) == NULL)
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
