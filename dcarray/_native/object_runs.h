/* Object runs: a short run whose arguments are parts of objects (dcarray/jit/loops/sites/path_values.py): they are read before it, and
 * those that it assigns are bound after it.
 *
 * Parts are read where that runs no code of the program: attributes that instances or classes hold themselves, and items of
 * dictionaries.  All else is left to Python. */

enum { MOST_OWNERS = 16 };
/* Where an object is from: a value of the site, a global name, the dictionary of these; an attribute or an item of another one. */
enum { VALUE = 'v', GLOBAL = 'g', NAMES = 'n', ATTRIBUTE = 'a', ELEMENT = 'i' };
enum { METHOD_OF = 'm', PROPERTY_OF = 'p' }; /* how a function of the program is found, besides VALUE and GLOBAL */

/* Of a Part, ``at`` is the value or the owner, ``first`` the key, ``second`` an owner's class or a function's object. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *python, *run, *names, *spec; /* the spec holds all objects of the parts */
    PyObject *guards;
    Part owners[MOST_OWNERS], functions[MOST_PARTS], reads[MOST_PARTS], written[MOST_PARTS];
    int others[MOST_VALUES];
    int value_count, owner_count, function_count, read_count, written_count, other_count;
} ObjectRun;

/* What a class or its bases hold under a name, borrowed; NULL if nothing, or with an error. */
static PyObject *
of_class(PyTypeObject *kind, PyObject *key)
{
    PyObject *bases = kind->tp_mro, *attribute = NULL;
    for (Py_ssize_t k = 0; attribute == NULL && bases != NULL && k < PyTuple_GET_SIZE(bases) && !PyErr_Occurred(); k++) {
        PyObject *held = class_dictionary((PyTypeObject *)PyTuple_GET_ITEM(bases, k));
        if (held != NULL)
            attribute = PyDict_GetItemWithError(held, key);
        Py_XDECREF(held);
    }
    return attribute;
}

/* A part of an object, a new reference; NULL without an error if it is left to Python.  With ``own``, only what the object itself
 * holds. */
static PyObject *
read_part(PyObject *owner, const Part *p, int own)
{
    PyTypeObject *kind = Py_TYPE(owner);
    PyObject *part;
    if (p->kind == ELEMENT)
        return PyDict_CheckExact(owner) ? Py_XNewRef(PyDict_GetItemWithError(owner, p->first)) : NULL;
    if (kind->tp_getattro != PyObject_GenericGetAttr || (own && kind->tp_setattro != PyObject_GenericSetAttr))
        return NULL;
    part = of_class(kind, p->first);
    if (PyErr_Occurred())
        return NULL;
    if (part != NULL && Py_IS_TYPE(part, &PyMemberDescr_Type)) {
        if (PyUnicode_Compare(PyDescr_NAME(part), p->first) != 0)
            return NULL; /* another name of a slot */
    } else if (part != NULL && (own || Py_TYPE(part)->tp_descr_get != NULL || Py_TYPE(part)->tp_descr_set != NULL))
        return NULL;
    part = PyObject_GetAttr(owner, p->first);
    if (part == NULL && PyErr_ExceptionMatches(PyExc_AttributeError))
        PyErr_Clear();
    return part;
}

/* Does an object have the function of the program that was compiled?  -1 with an error. */
static int
has_function(ObjectRun *s, PyObject **owners, PyObject *const *args, const Part *f)
{
    PyObject *function;
    int same;
    if (f->kind == VALUE)
        return args[f->at] == f->second;
    if (f->kind == GLOBAL) {
        function = PyDict_GetItemWithError(s->names, f->first);
        return PyErr_Occurred() ? -1 : function == f->second;
    }
    if (f->kind == ELEMENT) {
        function = PyDict_CheckExact(owners[f->at]) ? PyDict_GetItemWithError(owners[f->at], f->first) : NULL;
        return PyErr_Occurred() ? -1 : function == f->second;
    }
    if (Py_TYPE(owners[f->at])->tp_getattro != PyObject_GenericGetAttr)
        return 0;
    function = of_class(Py_TYPE(owners[f->at]), f->first);
    if (PyErr_Occurred())
        return -1;
    if (function != f->second || f->kind == PROPERTY_OF)
        return function == f->second;
    if ((function = PyObject_GetAttr(owners[f->at], f->first)) == NULL) /* the object's own attribute comes first */
        return -1;
    same = PyMethod_Check(function) && PyMethod_GET_FUNCTION(function) == f->second;
    Py_DECREF(function);
    return same;
}

/* Where an object keeps its parts: its dictionary, or itself; a new reference. */
static PyObject *
space_of(PyObject *owner)
{
    PyObject *held = PyDict_CheckExact(owner) ? NULL : PyObject_GenericGetDict(owner, NULL);
    if (held == NULL)
        PyErr_Clear();
    return held != NULL ? held : Py_NewRef(owner);
}

static int
one_place(PyObject *a, PyObject *b)
{
    PyObject *x, *y;
    int same = a == b;
    if (!same) {
        x = space_of(a);
        y = space_of(b);
        same = x == y;
        Py_DECREF(x);
        Py_DECREF(y);
    }
    return same;
}

/* Is a part that is assigned one of these on another way, too?  -1 with an error. */
static int
has_second_way(const Part *w, const Part *parts, int count, PyObject **owners)
{
    for (int k = 0; k < count; k++) {
        const Part *p = &parts[k];
        int same = p->kind != ATTRIBUTE && p->kind != ELEMENT ? 0 : p->at == w->at ? 0 : PyObject_RichCompareBool(p->first, w->first, Py_EQ);
        if (same < 0 || (same && one_place(owners[p->at], owners[w->at])))
            return same < 0 ? -1 : 1;
    }
    return 0;
}

/* Find the owners, look at the functions, and read the parts: 1, 0 if that is left to Python, -1 with an error. */
static int
read_objects(ObjectRun *s, PyObject *const *args, PyObject **owners, PyObject **parts)
{
    int second = 0;
    for (int k = 0; k < s->owner_count; k++) {
        const Part *p = &s->owners[k];
        PyObject *owner = p->kind == VALUE ? Py_NewRef(args[p->at])
                          : p->kind == NAMES ? Py_NewRef(s->names)
                          : p->kind == GLOBAL ? Py_XNewRef(PyDict_GetItemWithError(s->names, p->first))
                                              : read_part(owners[p->at], p, 0);
        if (owner == NULL)
            return PyErr_Occurred() ? -1 : 0;
        owners[k] = owner;
        if ((PyObject *)Py_TYPE(owner) != p->second || (owner == s->names && p->kind != NAMES)) /* or its items are global names */
            return 0;
    }
    for (int k = 0; k < s->function_count; k++) {
        int same = has_function(s, owners, args, &s->functions[k]);
        if (same <= 0)
            return same;
    }
    for (int k = 0; k < s->read_count; k++)
        if ((parts[k] = read_part(owners[s->reads[k].at], &s->reads[k], 0)) == NULL)
            return PyErr_Occurred() ? -1 : 0;
    for (int k = 0; k < s->written_count && s->owner_count > 1 && !second; k++) {
        second = has_second_way(&s->written[k], s->owners, s->owner_count, owners);
        second = second ? second : has_second_way(&s->written[k], s->reads, s->read_count, owners);
        second = second ? second : has_second_way(&s->written[k], s->written, s->written_count, owners);
    }
    return second < 0 ? -1 : !second;
}

/* May the parts that are assigned be bound?  1, 0 if not, -1 with an error. */
static int
may_bind(ObjectRun *s, PyObject **owners)
{
    for (int k = 0; k < s->written_count; k++) {
        const Part *p = &s->written[k];
        PyObject *now;
        if (p->kind == ELEMENT && PyDict_CheckExact(owners[p->at]))
            continue;
        if ((now = read_part(owners[p->at], p, 1)) == NULL) /* what is not there yet is Python's */
            return PyErr_Occurred() ? -1 : 0;
        Py_DECREF(now);
    }
    return 1;
}

/* Bind the first results to parts of objects; the rest in a tuple of one tuple. */
static PyObject *
bind_parts(ObjectRun *s, PyObject **owners, PyObject *results)
{
    PyObject *rest, *result;
    for (int k = 0; k < s->written_count; k++) {
        const Part *p = &s->written[k];
        PyObject *value = PyTuple_GET_ITEM(results, k), *owner = owners[p->at];
        if ((p->kind == ELEMENT ? PyDict_SetItem(owner, p->first, value) : PyObject_SetAttr(owner, p->first, value)) < 0)
            return NULL;
    }
    if ((rest = PyTuple_GetSlice(results, s->written_count, PyTuple_GET_SIZE(results))) == NULL)
        return NULL;
    result = PyTuple_Pack(1, rest);
    Py_DECREF(rest);
    return result;
}

static PyObject *
call_object_run(PyObject *self, PyObject *const *args, size_t flags, PyObject *keywords)
{
    ObjectRun *s = (ObjectRun *)self;
    PyObject *owners[MOST_OWNERS] = {0}, *parts[MOST_PARTS] = {0}, *given[2 * MOST_VALUES + MOST_PARTS], *served = NULL, *result = NULL;
    Py_ssize_t count = 0, guards = PyTuple_GET_SIZE(s->guards);
    double begun = seconds(), inside = ((ShortRun *)s->run)->seconds;
    int done = keywords != NULL || PyVectorcall_NARGS(flags) != s->value_count ? 0 : read_objects(s, args, owners, parts);
    if (done > 0)
        done = may_bind(s, owners);
    if (done > 0) {
        for (int k = 0; k < s->other_count; k++)
            given[count++] = args[s->others[k]];
        for (int k = 0; k < s->read_count; k++)
            given[count++] = parts[k];
        for (Py_ssize_t k = 0; k < guards; k++)
            given[count++] = PyTuple_GET_ITEM(s->guards, k);
        served = PyObject_Vectorcall(s->run, given, count, NULL);
        done = served == NULL ? -1 : PyTuple_GET_SIZE(served) > 0;
    }
    else if (done < 0) { /* nothing has changed */
        PyObject *none = give_up((ShortRun *)s->run);
        done = none == NULL ? -1 : 0;
        Py_XDECREF(none);
    }
    if (done > 0 && (result = bind_parts(s, owners, PyTuple_GET_ITEM(served, 0))) == NULL)
        done = -1;
    for (int k = 0; k < s->read_count; k++)
        Py_XDECREF(parts[k]);
    for (int k = 0; k < s->owner_count; k++)
        Py_XDECREF(owners[k]);
    Py_XDECREF(served);
    if (done > 0) /* the run's own time, and that of this function */
        ((ShortRun *)s->run)->seconds = inside + seconds() - begun;
    if (done == 0)
        result = is_stopped() ? PyTuple_New(0) : PyObject_Vectorcall(s->python, args, flags, keywords);
    return done < 0 ? NULL : result;
}

AS_ONE_STEP(call_object, call_object_run)

#define OBJECT_RUN_FIELDS(DO) DO(python) DO(run) DO(names) DO(spec) DO(guards)
KEEPS_OBJECTS(ObjectRun, object_run, OBJECT_RUN_FIELDS, s->owner_count = s->function_count = s->read_count = s->written_count)

static PyMethodDef object_run_methods[] = {{"otherwise", object_run_otherwise, METH_O, NULL}, {0}};

static PyTypeObject ObjectRunType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dcarray._native.extension.ObjectRun",
    .tp_basicsize = sizeof(ObjectRun),
    .tp_vectorcall_offset = offsetof(ObjectRun, call),
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC,
    .tp_methods = object_run_methods,
    .tp_traverse = object_run_traverse,
    .tp_clear = object_run_clear,
    .tp_dealloc = object_run_dealloc,
};

/* make_object_run(python, run, names, count, others, guards, owners, functions, reads, written): a callable for so many values, which
 * calls Python's where it has no result. */
static PyObject *
make_object_run(PyObject *module, PyObject *args)
{
    PyObject *python, *run, *names, *others, *guards, *owners, *functions, *reads, *written;
    int count;
    ObjectRun *s;
    if (!PyArg_ParseTuple(args, "OO!O!iO!O!O!O!O!O!:make_object_run", &python, &ShortRunType, &run, &PyDict_Type, &names, &count,
                          &PyTuple_Type, &others, &PyTuple_Type, &guards, &PyTuple_Type, &owners, &PyTuple_Type, &functions,
                          &PyTuple_Type, &reads, &PyTuple_Type, &written))
        return NULL;
    if (PyType_Ready(&ObjectRunType) < 0)
        return NULL;
    if (PyTuple_GET_SIZE(others) > MOST_VALUES || PyTuple_GET_SIZE(guards) > MOST_VALUES) {
        PyErr_SetString(PyExc_ValueError, "too many values for an object run");
        return NULL;
    }
    if ((s = PyObject_GC_New(ObjectRun, &ObjectRunType)) == NULL)
        return NULL;
    memset((char *)s + sizeof(PyObject), 0, sizeof(ObjectRun) - sizeof(PyObject));
    s->call = call_object;
    s->python = Py_NewRef(python);
    s->run = Py_NewRef(run);
    s->names = Py_NewRef(names);
    s->spec = Py_NewRef(args);
    s->guards = Py_NewRef(guards);
    s->value_count = count;
    s->other_count = (int)PyTuple_GET_SIZE(others);
    for (int k = 0; k < s->other_count; k++)
        s->others[k] = (int)PyLong_AsLong(PyTuple_GET_ITEM(others, k));
    if (PyErr_Occurred() || (s->owner_count = read_parts(owners, s->owners, MOST_OWNERS)) < 0 ||
        (s->function_count = read_parts(functions, s->functions, MOST_PARTS)) < 0 ||
        (s->read_count = read_parts(reads, s->reads, MOST_PARTS)) < 0 ||
        (s->written_count = read_parts(written, s->written, MOST_PARTS)) < 0) {
        s->owner_count = 0;
        Py_DECREF(s);
        return NULL;
    }
    PyObject_GC_Track((PyObject *)s);
    return (PyObject *)s;
}
