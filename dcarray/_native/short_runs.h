/* Short runs: the plan of a site on values like those of its last run, in one call (dcarray/jit/loops/sites/short_runs.py).
 *
 * What Python does for a run takes longer than to compute a hundred elements.  A short run makes the same checks, and leaves
 * the run to Python where one fails, where a floating-point exception was raised, and from time to time. */
#include <stddef.h>

enum { MOST_PARTS = 24, MOST_VALUES = 32, MOST_SIZES = 48, MOST_UNDONE = 1 << 16 };
/* Where a parameter's memory, or a result, is from. */
enum { GIVEN = 'g', NUMBER = 'f', INTEGER = 'i', FRESH = 'n', MADE = 'm', SCALAR = 's', ITEM = 'w', CONSTANT = 'c', SAME = 'a', EITHER = 'e' };
enum { REAL_OF = 'q', INTEGER_OF = 'k' }; /* numbers that a function computes from the values */

typedef struct {
    char kind;
    int at;
    PyObject *first, *second; /* of fresh arrays the shape and the dtype; a constant */
} Part;

/* A size among the values: an int (axis -1), an item of a tuple, or the length of an array's axis; it is the symbol of this
 * number, or 0 where that is -1, plus something. */
typedef struct {
    int value, axis, symbol;
    long long added;
} SizePlace;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *python; /* called with the same arguments where a check fails */
    PyObject *checks, *others, *names, *builtins; /* checks of the values: arguments, and these names' values */
    PyObject *driver, *symbols, *threads, *flags; /* what is called, and with what */
    PyObject *serves; /* called with other symbols: None, or the parameters' shapes, or () where these stay */
    PyObject *bound, *contexts; /* (dictionary, name, object it is bound to), (context variable, its value) */
    PyObject *acquire, *release, *empty;
    Part parameters[MOST_PARTS], results[MOST_PARTS];
    int undo; /* whether the arrays that it writes are restored where it fails */
    int given, parameter_count, result_count, symbol_count, symbol_at[MOST_VALUES], size_count;
    SizePlace sizes[MOST_SIZES];
    long long now[MOST_VALUES]; /* the symbols */
    long counted;
    double until, seconds;
    long long runs;
} ShortRun;

/* Are names bound to the same objects as before, and do context variables have the same values?  -1 with an error. */
static int
same_surroundings(ShortRun *s)
{
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(s->bound); k++) {
        PyObject *one = PyTuple_GET_ITEM(s->bound, k);
        PyObject *now = PyDict_GetItemWithError(PyTuple_GET_ITEM(one, 0), PyTuple_GET_ITEM(one, 1));
        if (now != PyTuple_GET_ITEM(one, 2))
            return PyErr_Occurred() ? -1 : 0;
    }
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(s->contexts); k++) {
        PyObject *one = PyTuple_GET_ITEM(s->contexts, k), *now;
        if (PyContextVar_Get(PyTuple_GET_ITEM(one, 0), NULL, &now) < 0)
            return -1;
        Py_XDECREF(now);
        if ((now == NULL ? Py_None : now) != PyTuple_GET_ITEM(one, 1))
            return 0;
    }
    return 1;
}

/* Find the values of other names, and check all; 0 if one is not as before, -1 with an error.  New references to the others. */
static int
find_values(ShortRun *s, PyObject *const *args, PyObject **values, Py_ssize_t *count, Span *spans, int *arrays)
{
    int found = 1;
    for (int k = 0; k < s->given; k++)
        values[k] = args[k];
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(s->others); k++) {
        PyObject *name = PyTuple_GET_ITEM(s->others, k), *value = PyDict_GetItemWithError(s->names, name);
        if (value == NULL && !PyErr_Occurred())
            value = PyDict_GetItemWithError(s->builtins, name);
        if (value == NULL)
            return PyErr_Occurred() ? -1 : 0;
        values[s->given + k] = Py_NewRef(value);
        (*count)++;
    }
    for (Py_ssize_t k = 0; found > 0 && k < PyTuple_GET_SIZE(s->checks); k++)
        found = meets_check(values[k], PyTuple_GET_ITEM(s->checks, k), spans, arrays, 0);
    return found > 0 ? are_apart(spans, *arrays) : found;
}

/* Copy the memory that a run may write to a buffer, or back from there. */
static void
copy_written(const Span *spans, int arrays, char *buffer, int back)
{
    for (int k = 0; k < arrays; k++) {
        size_t size = spans[k].high - spans[k].low;
        if (!spans[k].written)
            continue;
        memcpy(back ? spans[k].low : buffer, back ? buffer : spans[k].low, size);
        buffer += size;
    }
}

/* A copy of the memory that a run may write; NULL if it is too large. */
static char *
written_memory(const Span *spans, int arrays)
{
    size_t size = 0;
    char *buffer;
    for (int k = 0; k < arrays; k++)
        if (spans[k].written)
            size += spans[k].high - spans[k].low;
    buffer = size > MOST_UNDONE ? NULL : PyMem_Malloc(size);
    if (buffer != NULL)
        copy_written(spans, arrays, buffer, 0);
    return buffer;
}

/* A size among the values; -1 with an error, which is no other size of theirs but that of an int. */
static long long
size_at(const SizePlace *z, PyObject **values)
{
    PyObject *x = values[z->value];
    if (z->axis < 0)
        return PyLong_AsLongLong(x);
    if (PyTuple_CheckExact(x))
        return PyLong_AsLongLong(PyTuple_GET_ITEM(x, z->axis)); /* its check has looked at its length */
    return ((Array *)x)->shape[z->axis];
}

/* May the plan run with these symbols?  New arrays get their shapes then; -1 with an error. */
static int
serves_symbols(ShortRun *s, PyObject *symbols)
{
    PyObject *shapes = PyObject_CallOneArg(s->serves, symbols);
    int served = shapes == NULL ? -1 : shapes != Py_None;
    for (int k = 0; served > 0 && k < s->parameter_count; k++)
        if (s->parameters[k].kind == FRESH && PyTuple_CheckExact(shapes) && k < PyTuple_GET_SIZE(shapes))
            Py_SETREF(s->parameters[k].first, Py_NewRef(PyTuple_GET_ITEM(shapes, k)));
    Py_XDECREF(shapes);
    return served;
}

/* Are the symbols as before, or may the plan run with the new ones?  -1 with an error. */
static int
take_symbols(ShortRun *s, PyObject **values)
{
    PyObject *now;
    long long found[MOST_SIZES], symbols[MOST_SIZES];
    int same = 1;
    for (int k = 0; k < s->size_count; k++) {
        found[k] = size_at(&s->sizes[k], values);
        if (found[k] == -1 && PyErr_Occurred()) {
            PyErr_Clear(); /* it is too large */
            return 0;
        }
    }
    for (int k = 0; k < s->symbol_count; k++)
        symbols[k] = found[s->symbol_at[k]];
    for (int k = 0; k < s->size_count; k++) {
        const SizePlace *z = &s->sizes[k];
        if (found[k] != (z->symbol < 0 ? 0 : symbols[z->symbol]) + z->added)
            return 0;
    }
    for (int k = 0; same && k < s->symbol_count; k++)
        same = symbols[k] == s->now[k];
    if (same)
        return 1;
    if ((now = PyTuple_New(s->symbol_count)) == NULL)
        return -1;
    for (int k = 0; now != NULL && k < s->symbol_count; k++)
        set_or_clear(&now, k, PyLong_FromLongLong(symbols[k]));
    if (now == NULL)
        return -1;
    same = serves_symbols(s, now);
    if (same > 0) {
        Py_SETREF(s->symbols, Py_NewRef(now));
        memcpy(s->now, symbols, sizeof(s->now));
    }
    Py_DECREF(now);
    return same;
}

/* The results of a run in a tuple. */
static PyObject *
bound_results(ShortRun *s, PyObject **values, PyObject **made)
{
    PyObject *results = PyTuple_New(s->result_count), *nothing = PyTuple_New(0);
    for (int k = 0; results != NULL && k < s->result_count; k++) {
        Part *r = &s->results[k];
        PyObject *value = NULL;
        if (r->kind == MADE)
            value = Py_NewRef(made[r->at]);
        else if (r->kind == GIVEN)
            value = Py_NewRef(values[r->at]);
        else if (r->kind == SAME)
            value = Py_NewRef(PyTuple_GET_ITEM(results, r->at));
        else if (r->kind == CONSTANT)
            value = Py_NewRef(r->first);
        else if (r->kind == EITHER && !*((Array *)made[PyLong_AsLong(r->first)])->data) /* of Python's type */
            value = PyObject_CallOneArg(r->second, made[r->at]);
        else if (r->kind == SCALAR || r->kind == EITHER)
            value = PyObject_GetItem(made[r->at], nothing);
        else
            value = PyObject_CallMethod(made[r->at], "item", NULL);
        set_or_clear(&results, k, value);
    }
    Py_XDECREF(nothing);
    return results;
}

/* Compute a number from the values; 0 if it is not of the part's kind, -1 with an error. */
static int
compute_number(ShortRun *s, const Part *p, PyObject **values, double *real, int64_t *integer)
{
    Py_ssize_t count = s->given + PyTuple_GET_SIZE(s->others);
    PyObject *all = PyTuple_New(count), *found;
    int over = 1;
    for (Py_ssize_t k = 0; all != NULL && k < count; k++)
        PyTuple_SET_ITEM(all, k, Py_NewRef(values[k]));
    found = all == NULL ? NULL : PyObject_CallOneArg(p->first, all);
    Py_XDECREF(all);
    if (found == NULL)
        return -1;
    if (p->kind == REAL_OF && PyFloat_Check(found)) {
        *real = PyFloat_AS_DOUBLE(found);
        over = 0;
    }
    else if (p->kind == INTEGER_OF && PyLong_CheckExact(found))
        *integer = PyLong_AsLongLongAndOverflow(found, &over);
    Py_DECREF(found);
    return !over;
}

/* Run the driver: 1 with results, 0 if the run has to be Python's, -1 with an error.  Then memory is as before. */
static int
run_short(ShortRun *s, PyObject **values, const Span *spans, int arrays, PyObject **results)
{
    union { double real; int64_t integer; } numbers[MOST_PARTS];
    PyObject *made[MOST_PARTS] = {0}, *addresses = PyList_New(s->parameter_count), *raised = NULL;
    char *before = NULL;
    double begun = seconds();
    int done = addresses == NULL ? -1 : 1;
    for (int k = 0; done > 0 && k < s->parameter_count; k++) {
        Part *p = &s->parameters[k];
        void *address = &numbers[k];
        int over = 0;
        if (p->kind == GIVEN)
            address = ((Array *)values[p->at])->data;
        else if (p->kind == NUMBER)
            numbers[k].real = PyFloat_AS_DOUBLE(values[p->at]);
        else if (p->kind == INTEGER)
            numbers[k].integer = PyLong_AsLongLongAndOverflow(values[p->at], &over);
        else if (p->kind == REAL_OF || p->kind == INTEGER_OF)
            done = compute_number(s, p, values, &numbers[k].real, &numbers[k].integer);
        else {
            PyObject *of[] = {p->first, p->second};
            made[k] = PyObject_Vectorcall(s->empty, of, 2, NULL);
            if (made[k] == NULL)
                done = -1;
            else
                address = ((Array *)made[k])->data;
        }
        if (over)
            done = 0;
        if (done > 0) {
            PyObject *number = PyLong_FromVoidPtr(address);
            if (number == NULL)
                done = -1;
            else
                PyList_SET_ITEM(addresses, k, number);
        }
    }
    if (done > 0 && s->undo && (before = written_memory(spans, arrays)) == NULL)
        done = 0;
    if (done > 0) {
        PyObject *none = PyTuple_New(0);
        PyObject *of[] = {none, addresses, s->symbols, s->threads, s->flags};
        raised = none == NULL ? NULL : PyObject_Vectorcall(s->driver, of, 5, NULL);
        Py_XDECREF(none);
        if (raised == NULL && PyErr_ExceptionMatches(PyExc_Exception))
            PyErr_Clear(); /* Python runs it again, and finds the same */
        done = raised != NULL ? !(PyLong_AsLong(raised) & s->counted) : PyErr_Occurred() ? -1 : 0;
        Py_XDECREF(raised);
    }
    if (done > 0 && (*results = bound_results(s, values, made)) == NULL)
        done = -1;
    for (int k = 0; k < s->parameter_count; k++)
        Py_XDECREF(made[k]);
    Py_XDECREF(addresses);
    if (done <= 0 && before != NULL)
        copy_written(spans, arrays, before, 1);
    PyMem_Free(before);
    if (done > 0) {
        s->runs++;
        s->seconds += seconds() - begun;
    }
    return done;
}

static PyObject *
call_short(PyObject *self, PyObject *const *args, size_t flags, PyObject *keywords)
{
    ShortRun *s = (ShortRun *)self;
    PyObject *values[MOST_VALUES], *results = NULL, *none;
    Span spans[MOST_ARRAYS];
    int arrays = 0;
    Py_ssize_t others = 0;
    int done = 0;
    if (PyVectorcall_NARGS(flags) == s->given && keywords == NULL && seconds() < s->until &&
        (Wrapped == NULL || (Families != NULL && !simulated()))) {
        if ((none = PyObject_CallNoArgs(s->acquire)) == NULL)
            return NULL;
        Py_DECREF(none);
        done = same_surroundings(s);
        if (done > 0)
            done = find_values(s, args, values, &others, spans, &arrays);
        if (done > 0)
            done = take_symbols(s, values);
        if (done > 0)
            done = run_short(s, values, spans, arrays, &results);
        for (Py_ssize_t k = 0; k < others; k++)
            Py_DECREF(values[s->given + k]);
        if (done < 0) {
            PyObject *type, *value, *trace;
            PyErr_Fetch(&type, &value, &trace);
            Py_XDECREF(PyObject_CallNoArgs(s->release));
            PyErr_Restore(type, value, trace);
            return NULL;
        }
        if ((none = PyObject_CallNoArgs(s->release)) == NULL) {
            Py_XDECREF(results);
            return NULL;
        }
        Py_DECREF(none);
    }
    if (done > 0) {
        PyObject *found = PyTuple_New(1);
        if (found == NULL)
            Py_DECREF(results);
        else
            PyTuple_SET_ITEM(found, 0, results);
        return found;
    }
    if (s->python == NULL)
        return PyTuple_New(0);
    return PyObject_Vectorcall(s->python, args, flags, keywords);
}

#define SHORT_FIELDS(DO)                                                                                                        \
    DO(python) DO(checks) DO(others) DO(names) DO(builtins) DO(driver) DO(serves) DO(symbols) DO(threads) DO(flags) DO(bound)   \
        DO(contexts) DO(acquire) DO(release) DO(empty)

static int
short_traverse(PyObject *self, visitproc visit, void *arg)
{
    ShortRun *s = (ShortRun *)self;
#define VISIT(name) Py_VISIT(s->name);
    SHORT_FIELDS(VISIT)
    return 0;
}

static int
short_clear(PyObject *self)
{
    ShortRun *s = (ShortRun *)self;
#define CLEAR(name) Py_CLEAR(s->name);
    SHORT_FIELDS(CLEAR)
    for (int k = 0; k < MOST_PARTS; k++) {
        Py_CLEAR(s->parameters[k].first);
        Py_CLEAR(s->parameters[k].second);
        Py_CLEAR(s->results[k].first);
    }
    return 0;
}

static void
short_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    short_clear(self);
    PyObject_GC_Del(self);
}

/* arm(python, seconds, threads, flags, symbols, bound, contexts): what holds for so many seconds, and what is called where a
 * check fails. */
static PyObject *
short_arm(PyObject *self, PyObject *args)
{
    ShortRun *s = (ShortRun *)self;
    PyObject *python, *threads, *flags, *symbols, *bound, *contexts;
    double lasts;
    int served;
    if (!PyArg_ParseTuple(args, "OdO!O!O!O!O!:arm", &python, &lasts, &PyLong_Type, &threads, &PyLong_Type, &flags, &PyTuple_Type, &symbols,
                          &PyTuple_Type, &bound, &PyTuple_Type, &contexts))
        return NULL;
    if (PyTuple_GET_SIZE(symbols) != s->symbol_count) {
        PyErr_SetString(PyExc_ValueError, "other symbols than the plan's");
        return NULL;
    }
    for (int k = 0; k < s->symbol_count; k++)
        s->now[k] = PyLong_AsLongLong(PyTuple_GET_ITEM(symbols, k));
    s->counted = PyLong_AsLong(flags);
    if (PyErr_Occurred() || (served = serves_symbols(s, symbols)) < 0)
        return NULL;
    s->until = served ? seconds() + lasts : 0; /* some of its arrays are large now */
    Py_XSETREF(s->python, Py_NewRef(python));
    Py_XSETREF(s->threads, Py_NewRef(threads));
    Py_XSETREF(s->flags, Py_NewRef(flags));
    Py_XSETREF(s->symbols, Py_NewRef(symbols));
    Py_XSETREF(s->bound, Py_NewRef(bound));
    Py_XSETREF(s->contexts, Py_NewRef(contexts));
    Py_RETURN_NONE;
}

/* take(): the number of runs since the last time, and their seconds. */
static PyObject *
short_take(PyObject *self, PyObject *nothing)
{
    ShortRun *s = (ShortRun *)self;
    PyObject *found = Py_BuildValue("Ld", s->runs, s->seconds);
    s->runs = 0;
    s->seconds = 0;
    return found;
}

static PyMethodDef short_methods[] = {{"arm", short_arm, METH_VARARGS, NULL}, {"take", short_take, METH_NOARGS, NULL}, {0}};

static PyTypeObject ShortRunType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dcarray._native.extension.ShortRun",
    .tp_basicsize = sizeof(ShortRun),
    .tp_vectorcall_offset = offsetof(ShortRun, call),
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC,
    .tp_methods = short_methods,
    .tp_traverse = short_traverse,
    .tp_clear = short_clear,
    .tp_dealloc = short_dealloc,
};

/* Read parts from (kind, position, object, object); -1 with an error. */
static int
read_parts(PyObject *given, Part *parts, int most)
{
    if (PyTuple_GET_SIZE(given) > most) {
        PyErr_SetString(PyExc_ValueError, "too many parts for a short run");
        return -1;
    }
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(given); k++) {
        int kind;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(given, k), "CiOO", &kind, &parts[k].at, &parts[k].first, &parts[k].second))
            return -1;
        parts[k].kind = (char)kind;
        Py_INCREF(parts[k].first);
        Py_INCREF(parts[k].second);
    }
    return (int)PyTuple_GET_SIZE(given);
}

/* Read the places of the sizes, and which of them are the symbols; -1 with an error. */
static int
read_sizes(ShortRun *s, PyObject *sizes, PyObject *firsts)
{
    if (PyTuple_GET_SIZE(sizes) > MOST_SIZES || PyTuple_GET_SIZE(firsts) > MOST_VALUES) {
        PyErr_SetString(PyExc_ValueError, "too many sizes for a short run");
        return -1;
    }
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(sizes); k++) {
        SizePlace *z = &s->sizes[k];
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(sizes, k), "iiiL", &z->value, &z->axis, &z->symbol, &z->added))
            return -1;
    }
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(firsts); k++)
        s->symbol_at[k] = (int)PyLong_AsLong(PyTuple_GET_ITEM(firsts, k));
    s->size_count = (int)PyTuple_GET_SIZE(sizes);
    s->symbol_count = (int)PyTuple_GET_SIZE(firsts);
    return PyErr_Occurred() ? -1 : 0;
}

/* make_short_run(given, others, names, builtins, checks, driver, serves, parameters, results, sizes, firsts, lock, empty, undo):
 * a callable for so many arguments, which has to be armed first. */
static PyObject *
make_short_run(PyObject *module, PyObject *args)
{
    PyObject *others, *names, *builtins, *checks, *driver, *serves, *parameters, *results, *sizes, *firsts, *lock, *empty;
    int given, undo;
    ShortRun *s;
    if (!PyArg_ParseTuple(args, "iO!O!O!O!OOO!O!O!O!OOp:make_short_run", &given, &PyTuple_Type, &others, &PyDict_Type,
                          &names, &PyDict_Type, &builtins, &PyTuple_Type, &checks, &driver, &serves, &PyTuple_Type,
                          &parameters, &PyTuple_Type, &results, &PyTuple_Type, &sizes, &PyTuple_Type, &firsts, &lock, &empty,
                          &undo))
        return NULL;
    if (PyType_Ready(&ShortRunType) < 0)
        return NULL;
    if (given + PyTuple_GET_SIZE(others) > MOST_VALUES || PyTuple_GET_SIZE(checks) != given + PyTuple_GET_SIZE(others) ||
        PlainClass == NULL) {
        PyErr_SetString(PyExc_ValueError, "too many values for a short run");
        return NULL;
    }
    if ((s = PyObject_GC_New(ShortRun, &ShortRunType)) == NULL)
        return NULL;
    memset((char *)s + sizeof(PyObject), 0, sizeof(ShortRun) - sizeof(PyObject));
    s->call = call_short;
    s->given = given;
    s->undo = undo;
    s->others = Py_NewRef(others);
    s->names = Py_NewRef(names);
    s->builtins = Py_NewRef(builtins);
    s->checks = Py_NewRef(checks);
    s->driver = Py_NewRef(driver);
    s->serves = Py_NewRef(serves);
    s->empty = Py_NewRef(empty);
    if (read_sizes(s, sizes, firsts) < 0 || (s->acquire = PyObject_GetAttrString(lock, "acquire")) == NULL ||
        (s->release = PyObject_GetAttrString(lock, "release")) == NULL ||
        (s->parameter_count = read_parts(parameters, s->parameters, MOST_PARTS)) < 0 ||
        (s->result_count = read_parts(results, s->results, MOST_PARTS)) < 0 || PyErr_Occurred()) {
        Py_DECREF(s);
        return NULL;
    }
    PyObject_GC_Track((PyObject *)s);
    return (PyObject *)s;
}
