/* Functions and methods of ours that go straight to NumPy's on small arrays.  Included where what it uses is
 * declared. */

/* What NumPy does on plain arrays, or the `slow` function, which says what it means.  Without a function of
 * NumPy's, the first argument is an object that holds one at `place`. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *numpy, *slow;
    Py_ssize_t place;
    int looks, makes; /* of large arrays; small ones of numbers, or -1 */
    int answer;       /* of constants.h */
    int fold;         /* likewise */
} Short;

/* A draw of numbers, which no array says how: NULL, without an exception, if it is not so simple. */
static PyObject *
drawn(PyObject *function, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    PyObject *all[FEW], *r, *x;
    Py_ssize_t n = nargs + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
    if (nargs < 1 || n > FEW || !Viewing || simulated())
        return NULL;
    for (Py_ssize_t k = 1; k < n; k++) {
        all[k] = args[k];
        if (!leaf(args[k]) && !scalar(args[k]) && (!PyTuple_CheckExact(args[k]) || numbers_in(args[k], 0) < 0))
            return NULL;
    }
    all[0] = PyObject_GetAttr(args[0], PlainName);
    r = all[0] == NULL ? NULL : PyObject_Vectorcall(function, all, nargs, names);
    Py_XDECREF(all[0]);
    if (r == NULL)
        return NULL;
    x = wrapped(NULL, r);
    Py_DECREF(r);
    return x;
}

static PyObject *
call_short(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Short *s = (Short *)self;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    PyObject *r = NULL;
    if (s->fold && names == NULL && nargs == 1 && deferred_of(args[0]) != NULL) {
        r = folded_by(args[0], s->fold);
        if (r != NULL || PyErr_Occurred())
            return r;
    }
    if (s->answer && names == NULL && nargs > 0) {
        r = answer_of(s->answer, args, nargs);
        if (r != NULL || PyErr_Occurred())
            return r;
    }
    if (s->makes == DRAWN)
        r = drawn(s->numpy, args, nargs, names);
    else if (s->makes >= 0)
        r = small_made(s->numpy, s->makes, args, nargs, names);
    else if (s->numpy == NULL) {
        if (nargs > 1 && AT(args[0], s->place) != NULL)
            r = call_plain(AT(args[0], s->place), args + 1, nargs - 1, names, NOTHING, 0);
    }
    else {
        int first = s->looks != NOTHING && nargs > 0 && is_large(args[0]);
        r = call_plain(s->numpy, args, nargs, names, first ? s->looks : NOTHING, 0);
        if (r == NULL && s->looks != NOTHING && !PyErr_Occurred())
            r = call_plain(s->numpy, args, nargs, names, first ? NOTHING : s->looks, 0);
    }
    if (r != NULL || PyErr_Occurred())
        return r;
    return PyObject_Vectorcall(s->slow, args, nargsf, names);
}

static PyObject *
bind_short(PyObject *self, PyObject *x, PyObject *cls)
{
    return x == NULL || x == Py_None ? Py_NewRef(self) : PyMethod_New(self, x);
}

static PyObject *
attribute_of_short(PyObject *self, PyObject *name)
{
    PyObject *value = PyObject_GenericGetAttr(self, name);
    if (value != NULL || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return value;
    PyErr_Clear();
    return PyObject_GetAttr(((Short *)self)->slow, name);
}

/* As what it stands for, by the module where that is. */
static PyObject *
reduce_short(PyObject *self, PyObject *ignored)
{
    PyObject *names = PyImport_ImportModule("dcarray.api.functions.namespace"), *made;
    if (names == NULL)
        return NULL;
    made = PyObject_CallMethod(names, "reduced", "O", self);
    Py_DECREF(names);
    return made;
}

static PyMethodDef methods_of_short[] = {
    {"__reduce__", reduce_short, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyObject *
text_of_short(PyObject *self)
{
    return PyObject_Repr(((Short *)self)->slow);
}

static void
free_short(PyObject *self)
{
    Py_XDECREF(((Short *)self)->numpy);
    Py_XDECREF(((Short *)self)->slow);
    PyObject_Free(self);
}

static PyMemberDef members_of_short[] = {
    {"__wrapped__", T_OBJECT, offsetof(Short, slow), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

/* A type has a text of its own, or none, which an instance would give. */
static PyObject *
text_about_short(PyObject *self, void *ignored)
{
    return PyObject_GetAttrString(((Short *)self)->slow, "__doc__");
}

static PyGetSetDef computed_of_short[] = {
    {"__doc__", text_about_short, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* What both types have. */
#define SLOTS_OF_SHORT                                                                               \
    .tp_basicsize = sizeof(Short), .tp_vectorcall_offset = offsetof(Short, call),                    \
    .tp_call = PyVectorcall_Call, .tp_getattro = attribute_of_short, .tp_repr = text_of_short,       \
    .tp_dealloc = free_short, .tp_members = members_of_short, .tp_methods = methods_of_short,       \
    .tp_getset = computed_of_short

static PyTypeObject ShortType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dcarray._native.extension.method",
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_descr_get = bind_short,
    SLOTS_OF_SHORT,
};

/* As that, of what does not become a method as an attribute of a class. */
static PyTypeObject MakerType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dcarray._native.extension.function",
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    SLOTS_OF_SHORT,
};

static PyObject *
new_short(PyObject *numpy, PyObject *slow, int looks, int makes)
{
    Short *made = PyObject_New(Short, makes < 0 || makes == SQUARE || makes == DRAWN ? &ShortType : &MakerType);
    if (made == NULL)
        return NULL;
    made->call = call_short;
    made->numpy = Py_XNewRef(numpy);
    made->place = 0;
    made->looks = looks;
    made->makes = makes;
    made->answer = UNANSWERED;
    made->fold = UNFOLDED;
    made->slow = Py_NewRef(slow);
    return (PyObject *)made;
}

/* short(function, slow) */
static PyObject *
short_way(PyObject *module, PyObject *args)
{
    PyObject *numpy, *slow, *function, *made;
    int at;
    if (!PyArg_ParseTuple(args, "OO", &numpy, &slow))
        return NULL;
    function = Served == NULL ? NULL : PyDict_GetItemWithError(Served, numpy);
    if (function == NULL)
        return PyErr_Occurred() ? NULL : Py_NewRef(slow);
    made = new_short(function, slow, looks_of(numpy), -1);
    at = answered_at(numpy);
    if (made != NULL)
        ((Short *)made)->fold = fold_of(numpy);
    if (made != NULL && Answered[at].function == numpy)
        ((Short *)made)->answer = Answered[at].answer;
    return made;
}

/* short_maker(function, slow, kind) */
static PyObject *
short_maker(PyObject *module, PyObject *args)
{
    PyObject *numpy, *slow;
    int kind;
    if (!PyArg_ParseTuple(args, "OOi", &numpy, &slow, &kind))
        return NULL;
    if (Ours == NULL || kind < 0 || kind > DRAWN || (kind == DRAWN && (Served == NULL || Adopt == NULL)))
        return Py_NewRef(slow);
    return PyType_Ready(&ShortType) < 0 || PyType_Ready(&MakerType) < 0 ? NULL : new_short(numpy, slow, NOTHING, kind);
}

/* short_call(cls, name, method): calls of instances of `cls`, which hold their function of NumPy's in a slot, or of
 * this method of theirs */
static PyObject *
short_call(PyObject *module, PyObject *args)
{
    PyObject *cls, *slow, *made;
    const char *name, *method = "__call__";
    Py_ssize_t place;
    int done;
    if (!PyArg_ParseTuple(args, "O!s|s", &PyType_Type, &cls, &name, &method))
        return NULL;
    if (Served == NULL)
        Py_RETURN_NONE;
    slow = PyObject_GetAttrString(cls, method);
    made = slow == NULL || find_slot(cls, name, &place) ? NULL : new_short(NULL, slow, NOTHING, -1);
    Py_XDECREF(slow);
    if (made == NULL)
        return NULL;
    ((Short *)made)->place = place;
    done = PyObject_SetAttrString(cls, method, made);
    Py_DECREF(made);
    if (done < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Put the short way of these methods into the class. */
static int
shorten_methods(PyObject *names)
{
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(names); k++) {
        PyObject *name = PyTuple_GET_ITEM(names, k), *method = NULL;
        PyObject *numpy = PyObject_GetAttr((PyObject *)Plain, name), *slow = PyObject_GetAttr((PyObject *)Ours, name);
        int done = numpy == NULL || slow == NULL || (method = new_short(numpy, slow, looks_of(name), -1)) == NULL;
        if (!done) {
            ((Short *)method)->fold = fold_of(name);
            done = PyObject_SetAttr((PyObject *)Ours, name, method) < 0;
        }
        Py_XDECREF(numpy);
        Py_XDECREF(slow);
        Py_XDECREF(method);
        if (done)
            return -1;
    }
    return 0;
}

/* serve(functions, methods, questions, views, answered) */
static PyObject *
serve(PyObject *module, PyObject *args)
{
    PyObject *functions, *names, *questions, *views, *answers;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!", &PyDict_Type, &functions, &PyTuple_Type, &names, &PyFrozenSet_Type,
                          &questions, &PyDict_Type, &views, &PyTuple_Type, &answers))
        return NULL;
    if (Ours == NULL || Served != NULL)
        Py_RETURN_FALSE;
    if (know_answers(answers) < 0)
        return NULL;
    Questions = Py_NewRef(questions);
    Viewers = Py_NewRef(views);
    Viewing = PyDict_GET_SIZE(views) > 0;
    if (PyType_Ready(&ShortType) < 0 || shorten_methods(names) < 0 || exchange_method(&function_def, &Function))
        return NULL;
    Served = Py_NewRef(functions);
    Dot = PyDict_GetItemWithError(functions, PyTuple_GET_ITEM(answers, DOT - 1));
    DotMethod = PyDict_GetItemString(Plain->tp_dict, "dot");
    Py_RETURN_TRUE;
}
