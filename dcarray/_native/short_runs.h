/* Short runs: the plan of a site on values like those of its last run, in one call (dcarray/jit/loops/sites/short_runs.py).
 *
 * What Python does for a run takes longer than to compute a hundred elements.  A short run makes the same checks, and leaves
 * the run to Python where one fails, where a floating-point exception was raised, and from time to time. */
#include <time.h>

#include "short_run_steps.h"

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

/* Tell the site of the error that is set: an empty tuple, so that Python runs the statements, or NULL with an error. */
static PyObject *
give_up(ShortRun *s)
{
    PyObject *type, *value, *trace, *answer;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (!PyErr_GivenExceptionMatches(type, PyExc_Exception)) {
        PyErr_Restore(type, value, trace);
        return NULL;
    }
    if (trace != NULL)
        PyException_SetTraceback(value, trace);
    answer = PyObject_CallOneArg(s->failed, value);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return answer;
}

static PyObject *
call_short_run(PyObject *self, PyObject *const *args, size_t flags, PyObject *keywords)
{
    ShortRun *s = (ShortRun *)self;
    PyObject *values[MOST_VALUES], *results = NULL, *none;
    Span spans[MOST_ARRAYS];
    int arrays = 0;
    Py_ssize_t others = 0;
    int done = 0;
    double begun = seconds();
    PyObject *take = PyVectorcall_NARGS(flags) == s->given + 1 ? args[s->given] : NULL;
    /* the program's frame may have other global names; without them the server calls */
    if ((PyVectorcall_NARGS(flags) == s->given ? PyEval_GetGlobals() == s->names : take != NULL) && keywords == NULL && begun < s->until &&
        (Wrapped == NULL || (Families != NULL && !simulated()))) {
        if ((none = PyObject_CallNoArgs(s->acquire)) == NULL)
            return NULL;
        Py_DECREF(none);
        int entered = !s->busy;
        s->busy = 1;
        done = entered ? same_surroundings(s) : 0;
        if (done > 0)
            done = find_values(s, args, values, &others, spans, &arrays);
        if (done > 0)
            done = take_symbols(s, values);
        if (done > 0)
            done = run_short(s, values, spans, arrays, take, &results);
        s->busy = !entered;
        for (Py_ssize_t k = 0; k < others; k++)
            Py_DECREF(values[s->given + k]);
        if (done < 0) {
            PyObject *type, *value, *trace;
            PyErr_Fetch(&type, &value, &trace);
            Py_XDECREF(PyObject_CallNoArgs(s->release));
            PyErr_Restore(type, value, trace);
            return give_up(s);
        }
        if ((none = PyObject_CallNoArgs(s->release)) == NULL) {
            Py_XDECREF(results);
            return NULL;
        }
        Py_DECREF(none);
    }
    if (done > 0) {
        s->runs++;
        s->seconds += seconds() - begun;
        PyObject *answer = PyTuple_New(1);
        if (answer == NULL)
            Py_DECREF(results);
        else
            PyTuple_SET_ITEM(answer, 0, results);
        return answer;
    }
    if (s->python == NULL || is_stopped())
        return PyTuple_New(0);
    return PyObject_Vectorcall(s->python, args, flags, keywords);
}

/* A call from the program as one step: no finalizer and no handler runs while values have been read and results are not stored. */
#define AS_ONE_STEP(name, called)                                                                                        \
    static PyObject *name(PyObject *self, PyObject *const *args, size_t flags, PyObject *keywords)                             \
    {                                                                                                                           \
        int collects = PyGC_Disable();                                                                                          \
        unsigned long held = hold_signals();                                                                                    \
        PyObject *result = called(self, args, flags, keywords);                                                                 \
        let_go(held);                                                                                                           \
        if (collects)                                                                                                           \
            PyGC_Enable();                                                                                                      \
        return result;                                                                                                          \
    }

AS_ONE_STEP(call_short, call_short_run)

#define SHORT_FIELDS(DO)                                                                                                        \
    DO(python) DO(checks) DO(others) DO(names) DO(builtins) DO(driver) DO(serves) DO(symbols) DO(threads) DO(flags) DO(bound)   \
        DO(contexts) DO(failed) DO(acquire) DO(release) DO(empty) DO(spec) DO(shapes)

/* The functions of a type of runs that keeps objects, its FIELDS: those of the collector, and `otherwise`.  FORGET names the numbers
 * of parts that borrow from these objects. */
#define KEEPS_OBJECTS(Type, prefix, FIELDS, FORGET)                                                                             \
    static int prefix##_traverse(PyObject *self, visitproc visit, void *arg)                                                    \
    {                                                                                                                           \
        Type *s = (Type *)self;                                                                                                 \
        FIELDS(VISIT_FIELD)                                                                                                     \
        return 0;                                                                                                               \
    }                                                                                                                           \
    static int prefix##_clear(PyObject *self)                                                                                   \
    {                                                                                                                           \
        Type *s = (Type *)self;                                                                                                 \
        FORGET = 0;                                                                                                             \
        FIELDS(CLEAR_FIELD)                                                                                                     \
        return 0;                                                                                                               \
    }                                                                                                                           \
    static void prefix##_dealloc(PyObject *self)                                                                                \
    {                                                                                                                           \
        PyObject_GC_UnTrack(self);                                                                                              \
        prefix##_clear(self);                                                                                                   \
        PyObject_GC_Del(self);                                                                                                  \
    }                                                                                                                           \
    /* otherwise(callable): what is called where a check fails. */                                                              \
    static PyObject *prefix##_otherwise(PyObject *self, PyObject *python)                                                       \
    {                                                                                                                           \
        Py_XSETREF(((Type *)self)->python, Py_NewRef(python));                                                                  \
        Py_RETURN_NONE;                                                                                                         \
    }

#define VISIT_FIELD(name) Py_VISIT(s->name);
#define CLEAR_FIELD(name) Py_CLEAR(s->name);
KEEPS_OBJECTS(ShortRun, short, SHORT_FIELDS, s->parameter_count = s->result_count)

/* arm(seconds, threads, flags, symbols, bound, contexts): what holds for so many seconds. */
static PyObject *
short_arm(PyObject *self, PyObject *args)
{
    ShortRun *s = (ShortRun *)self;
    PyObject *threads, *flags, *symbols, *bound, *contexts;
    double lasts;
    int served;
    if (!PyArg_ParseTuple(args, "dO!O!O!O!O!:arm", &lasts, &PyLong_Type, &threads, &PyLong_Type, &flags, &PyTuple_Type, &symbols,
                          &PyTuple_Type, &bound, &PyTuple_Type, &contexts))
        return NULL;
    if (PyTuple_GET_SIZE(symbols) != s->symbol_count) {
        PyErr_SetString(PyExc_ValueError, "other symbols than the plan's");
        return NULL;
    }
    if (s->busy) /* its symbols and launches are in use */
        Py_RETURN_NONE;
    for (int k = 0; k < s->symbol_count; k++)
        s->now[k] = PyLong_AsLongLong(PyTuple_GET_ITEM(symbols, k));
    s->counted = PyLong_AsLong(flags);
    if (PyErr_Occurred() || (served = serves_symbols(s, symbols)) < 0)
        return NULL;
    s->until = served ? seconds() + lasts : 0; /* some of its arrays are large now */
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
    PyObject *counts = Py_BuildValue("Ld", s->runs, s->seconds);
    s->runs = 0;
    s->seconds = 0;
    return counts;
}

static PyMethodDef short_methods[] = {
    {"arm", short_arm, METH_VARARGS, NULL}, {"otherwise", short_otherwise, METH_O, NULL}, {"take", short_take, METH_NOARGS, NULL}, {0}};

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

/* Read parts from (kind, position, object, object), which are borrowed; their number, -1 with an error. */
static int
read_parts(PyObject *given, Part *parts, int most)
{
    if (PyTuple_GET_SIZE(given) > most) {
        PyErr_SetString(PyExc_ValueError, "too many parts");
        return -1;
    }
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(given); k++) {
        int kind;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(given, k), "CiOO", &kind, &parts[k].at, &parts[k].first, &parts[k].second))
            return -1;
        parts[k].kind = (char)kind;
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

/* Read the launches from (mask, stops, (parameter, ...)); -1 with an error. */
static int
read_launches(ShortRun *s, PyObject *launches)
{
    Py_ssize_t count = PyTuple_GET_SIZE(launches);
    for (Py_ssize_t k = 0; k < count; k++) {
        NativeLaunch *n = &s->launches[k];
        PyObject *places;
        if (k == MOST_LAUNCHES) {
            PyErr_SetString(PyExc_ValueError, "too many launches for a short run");
            return -1;
        }
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(launches, k), "ipO!", &n->mask, &n->stops, &PyTuple_Type, &places))
            return -1;
        n->count = (int)PyTuple_GET_SIZE(places);
        for (int j = 0; j < n->count && j < MOST_BLOCK; j++)
            n->at[j] = (signed char)PyLong_AsLong(PyTuple_GET_ITEM(places, j));
    }
    s->known_launches = (int)count;
    return PyErr_Occurred() ? -1 : 0;
}

/* make_short_run(given, others, names, builtins, checks, driver, serves, parameters, results, sizes, firsts, lock, empty, undo,
 * temporary, launches, failed): a callable for so many arguments, which has to be armed first. */
static PyObject *
make_short_run(PyObject *module, PyObject *args)
{
    PyObject *others, *names, *builtins, *checks, *driver, *serves, *parameters, *results, *sizes, *firsts, *lock, *empty, *launches, *failed;
    int given, undo;
    Py_ssize_t temporary;
    ShortRun *s;
    if (!PyArg_ParseTuple(args, "iO!O!O!O!OOO!O!O!O!OOpnO!O:make_short_run", &given, &PyTuple_Type, &others, &PyDict_Type,
                          &names, &PyDict_Type, &builtins, &PyTuple_Type, &checks, &driver, &serves, &PyTuple_Type,
                          &parameters, &PyTuple_Type, &results, &PyTuple_Type, &sizes, &PyTuple_Type, &firsts, &lock, &empty,
                          &undo, &temporary, &PyTuple_Type, &launches, &failed))
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
    s->temporary = temporary;
    s->others = Py_NewRef(others);
    s->names = Py_NewRef(names);
    s->builtins = Py_NewRef(builtins);
    s->checks = Py_NewRef(checks);
    s->driver = Py_NewRef(driver);
    s->serves = Py_NewRef(serves);
    s->empty = Py_NewRef(empty);
    s->failed = Py_NewRef(failed);
    s->spec = Py_NewRef(args);
    if (read_launches(s, launches) < 0 || read_sizes(s, sizes, firsts) < 0 || (s->acquire = PyObject_GetAttrString(lock, "acquire")) == NULL ||
        (s->release = PyObject_GetAttrString(lock, "release")) == NULL ||
        (s->parameter_count = read_parts(parameters, s->parameters, MOST_PARTS)) < 0 ||
        (s->result_count = read_parts(results, s->results, MOST_PARTS)) < 0 || PyErr_Occurred()) {
        Py_DECREF(s);
        return NULL;
    }
    PyObject_GC_Track((PyObject *)s);
    return (PyObject *)s;
}
