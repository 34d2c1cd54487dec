/* The native module: calls on small arrays, call sites and the entry of compiled loops, in C.
 *
 * A small array is a handle around a plain ndarray, and what an operator does with it is: take the plain
 * arrays out, let NumPy work, put the result into a new handle.  In Python that alone takes longer than
 * NumPy's own work on some hundred elements.  `install` puts functions into the type's slots that do it here,
 * and leave every other case to the methods in `array.py`, which say what an operator means.  Slices
 * of large arrays are composed here too.  Without this module (no C compiler where the package was built)
 * Python does everything.
 *
 * The headers are parts of this file, included where what they use is declared.  A function that may *decline*
 * returns NULL (or -1 for a number, 0 for a yes) without an exception, and has changed nothing, where the
 * general way in Python is to do the call.  References are new unless a comment says that they are borrowed. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include "python_versions.h"
#include "collections.h"
#include "interrupts.h"
#include "constants.h"
#include "arrays.h"
#include "log_format.h"
#include "windows.h"

static PyTypeObject *Wrapped;  /* dcarray.ndarray; NULL as long as nothing is installed */
static PyTypeObject *PlainClass; /* numpy.ndarray */
static PyTypeObject *Recordings;           /* the class of these */
static PyObject *Current;                  /* a function: the options in force */
static PyObject *Options;                  /* the namespace of `config`, in which they are */
static PyObject *Scoped;                   /* a context variable: the options in force, or None */
static Py_ssize_t SmallLimit;    /* results of so many elements may not count as small */
static PyObject *Wrap;      /* a function of a plain array: the handle, small or large */
static PyObject *Scalars;   /* a tuple of types of which NumPy takes the instances as they are */
static PyObject *Ufunc;     /* the method __array_ufunc__ */
static PyObject *Stores;    /* the class of stores */
static PyObject *Example;   /* a new one */
static PyObject *Axes;      /* what stands for a key where all axes are turned */
static PyObject *Locate;    /* a function: find the window of such a view; see handle.py */
/* Texts that are looked for, each made once. */
#define NAMES(X)                                                                                      \
    X(Call, "__call__") X(Out, "out") X(Below, "eager_below") X(IndexName, "_index") X(DeviceName, "device") \
    X(ItemSize, "itemsize") X(CharName, "char") X(DtypeName, "dtype") X(Reduce, "reduce")             \
    X(Accumulate, "accumulate") X(Outer, "outer") X(Reduceat, "reduceat") X(Process, "_process")      \
    X(Simulation, "dcarray.comm.transport.simulated_ranks") X(PlainName, "_plain") X(CurrentName, "current")    \
    X(RecName, "rec") X(ReadyName, "ready") X(ItsDevice, "_device")        \
    X(CastName, "cast") X(OldName, "old") X(NewName, "new") X(MapName, "map") X(ModulesName, "modules") \
    X(AxisName, "axis") X(KeepdimsName, "keepdims") X(WhereName, "where")
#define DECLARE_NAME(variable, text) static PyObject *variable;
NAMES(DECLARE_NAME)

#define AT(x, place) (*(PyObject **)((char *)(x) + (place)))

/* The plain array of a small one, or NULL. */
static inline PyObject *
small_array(PyObject *x)
{
    PyObject *a;
    if (Py_TYPE(x) != Wrapped)
        return NULL;
    a = AT(x, Small);
    return a != NULL && Py_TYPE(a) == PlainClass ? a : NULL;
}

static inline int
is_large(PyObject *x)
{
    return Py_TYPE(x) == Wrapped && AT(x, Small) == Py_None;
}

/* Has this recording run?  What else may be pending on memory (`dcarray.core.shard`) counts as pending. */
static inline int
has_run(PyObject *rec)
{
    return rec == NULL || rec == Py_None || (Py_TYPE(rec) == Recordings && AT(rec, Done) == Py_True);
}

/* The store that a view of NumPy's, whose window is still to be found, is a view of; NULL for any other array. */
static inline PyObject *
viewed_store(PyObject *x)
{
    PyObject *origin = AT(x, Store) == NULL ? AT(x, Origin) : NULL;
    return origin != NULL && Py_TYPE(origin) == (PyTypeObject *)Stores ? origin : NULL;
}

/* The head of a store's family; borrowed. */
static inline PyObject *
family_of(PyObject *store)
{
    PyObject *head = AT(store, Head);
    return head == NULL || head == Py_None ? store : head;
}

/* The head of the family of a large array's memory, borrowed; NULL as long as it has no store. */
static inline PyObject *
head_of(PyObject *x)
{
    PyObject *store = AT(x, Store) != NULL ? AT(x, Store) : viewed_store(x);
    return store == NULL ? NULL : family_of(store);
}

/* Is nothing pending on the memory of a large array? */
static inline int
is_idle(PyObject *x)
{
    PyObject *head = head_of(x);
    return head == NULL || (has_run(AT(head, Used)) && has_run(AT(head, Dirty)));
}

/* An attribute that is a number of elements; -1 with an exception. */
static Py_ssize_t
number_in(PyObject *x, PyObject *name)
{
    PyObject *value = x == NULL ? NULL : PyObject_GetAttr(x, name);
    Py_ssize_t n = value == NULL ? -1 : PyLong_AsSsize_t(value);
    Py_XDECREF(value);
    return n;
}

#include "options.h"
#include "large_views.h"
#include "operands.h"
#include "handles.h"
#include "results.h"
#include "ufunc_loops.h"
#include "slots.h"
#include "log_entries.h"
#include "recording.h"
#include "operators.h"
#include "indexing.h"
#include "attributes.h"

#define FEW 8 /* arguments that need no memory of their own */

#include "ufuncs.h"
#include "metadata.h"
#include "wrapping.h"
/* ---- the buffer protocol ----------------------------------------------------------------------- */
#include "buffer_exports.h"

/* Unlike the function of `buffers.py`, for Python 3.11, this one can also say why there is no buffer; and unlike later
 * versions of Python, which look for __buffer__ themselves, it does not hide whose memory it is. */
static int
get_buffer(PyObject *x, Py_buffer *view, int flags)
{
    PyObject *a = small_array(x), *memory;
    int done;
    if (export_array(x, view, flags))
        return 0;
    if (a != NULL && usual_dtype(a) && known_dtype(a) && !strchr("qQ", ((Array *)a)->dtype->type))
        return PyObject_GetBuffer(a, view, flags);
    memory = PyObject_CallMethod(x, "__buffer__", "i", flags);
    done = memory == NULL ? -1 : PyObject_GetBuffer(memory, view, flags);
    if (done < 0 && memory != NULL && PyMemoryView_Check(memory) && PyErr_ExceptionMatches(PyExc_BufferError)) {
        PyErr_Clear(); /* the array itself has NumPy's words for what it is not */
        done = PyObject_GetBuffer(PyMemoryView_GET_BUFFER(memory)->obj, view, flags);
    }
    if (memory == NULL)
        view->obj = NULL;
    Py_XDECREF(memory);
    return done;
}

/* ---- functions --------------------------------------------------------------------------------- */
/* Whether nothing is pending on an array, plain or wrapped, or on those of a tuple or list; it may decline. */
static int
up_to_date(PyObject *x)
{
    PyObject *view, *store;
    if (Py_TYPE(x) == PlainClass)
        return 1;
    if (PyTuple_Check(x) || PyList_CheckExact(x)) {
        int current = 1;
        for (Py_ssize_t k = 0; current && k < PySequence_Fast_GET_SIZE(x); k++) {
            PyObject *item = PySequence_Fast_GET_ITEM(x, k);
            current = Py_TYPE(item) == PlainClass || Py_TYPE(item) == Wrapped ? up_to_date(item) : 0;
        }
        return current;
    }
    if (Py_TYPE(x) != Wrapped)
        return 0;
    view = AT(x, View);
    store = AT(x, Store);
    return small_array(x) != NULL || (is_uninitialised(x) && is_one_rank()) ||
           (is_large(x) && is_idle(x) &&
            ((view != NULL && Py_TYPE(view) == PlainClass) || (store != NULL && AT(store, Mem) != Py_None)));
}

/* What `make_evaluate_route` makes of a function, which is `self`. */
static PyObject *
itself_or_call(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs == 1 && up_to_date(args[0]))
        return Py_NewRef(args[0]);
    return PyObject_Vectorcall(self, args, nargs, NULL);
}

static PyMethodDef evaluate_def = {"evaluate", (PyCFunction)(void (*)(void))itself_or_call, METH_FASTCALL,
                                   NULL};

static PyObject *
make_evaluate_route(PyObject *module, PyObject *function)
{
    PyObject *doc = PyObject_GetAttrString(function, "__doc__"), *text;
    if (doc == NULL)
        return NULL;
    text = PyUnicode_FromFormat("evaluate(x=..., /, *more)\n--\n\n%S", doc);
    Py_DECREF(doc);
    if (text == NULL)
        return NULL;
    evaluate_def.ml_doc = PyUnicode_AsUTF8(text); /* the text is kept for good */
    return evaluate_def.ml_doc == NULL ? NULL : PyCFunction_New(&evaluate_def, function);
}

/* ---- the module -------------------------------------------------------------------------------- */
#define EXCHANGE(slot, ...)                                                                           \
    slow_##slot = numbers->slot;                                                                     \
    numbers->slot = fast_##slot;
#define FIND(slot, op, name, ufunc) || find_methods(&methods_##slot, "__" name "__", "__r" name "__", #ufunc)
#define REPLACE(slot, op, name, ufunc) numbers->slot = fast_##slot;

/* Where an object keeps what the class names in __slots__. */
static int
find_slot(PyObject *cls, const char *name, Py_ssize_t *place)
{
    for (PyTypeObject *type = (PyTypeObject *)cls; type != NULL; type = type->tp_base)
        for (PyMemberDef *member = type->tp_members; member != NULL && member->name != NULL; member++)
            if (strcmp(member->name, name) == 0) {
                *place = member->offset;
                return 0;
            }
    PyErr_Format(PyExc_TypeError, "%s is not a slot", name);
    return -1;
}

/* Give a class a method in C, and find the one in Python. */
static int
replace_method(PyTypeObject *type, PyMethodDef *definition, PyObject **old)
{
    int done;
    PyObject *method = PyDescr_NewMethod(type, definition);
    *old = PyObject_GetAttrString((PyObject *)type, definition->ml_name);
    done = method == NULL || *old == NULL || PyObject_SetAttrString((PyObject *)type, definition->ml_name, method) < 0;
    Py_XDECREF(method);
    return done ? -1 : 0;
}

#include "functions.h"
#include "creation.h"
#include "native_routes.h"
#include "number_lists.h"
#include "guard_checks.h"
#include "thread_pool.h"
#include "launches.h"
#include "short_runs.h"
#include "object_runs.h"
#include "floor_memory.h"
#include "floor_loops.h"
#include "floor_calls.h"
#include "floor_reductions.h"
#include "choices.h"
#include "sampler_rest.h"
#include "program_start.h"
#include "tools.h"

static PyObject *
install(PyObject *module, PyObject *args)
{
    PyObject *cls, *array, *wrap, *scalars, *store, *recording, *current, *dtypes, *axes, *config, *locate;
    Py_ssize_t limit;
    int known;
    PyNumberMethods *numbers;
    PyMappingMethods *mapping;
    if (!PyArg_ParseTuple(args, "O!O!OnO!O!O!OO!OO!O", &PyType_Type, &cls, &PyType_Type, &array, &wrap, &limit,
                          &PyTuple_Type, &scalars, &PyType_Type, &store, &PyType_Type,
                          &recording, &current, &PyTuple_Type, &dtypes, &axes, &PyDict_Type, &config, &locate))
        return NULL;
    Scoped = PyDict_GetItemString(config, "_scoped");
    if (Scoped == NULL || !PyContextVar_CheckExact(Scoped)) {
        PyErr_SetString(PyExc_TypeError, "the options in force are not where they are looked for");
        return NULL;
    }
    known = has_known_layout(array);
    if (known < 0)
        return NULL;
    if (Wrapped != NULL || !known)
        Py_RETURN_FALSE;
    if (!PyType_HasFeature((PyTypeObject *)cls, Py_TPFLAGS_HEAPTYPE)) {
        PyErr_SetString(PyExc_TypeError, "a class made in Python is wanted");
        return NULL;
    }
#define FIND_IN_HANDLES(text, variable) || find_slot(cls, text, &variable)
#define FIND_IN_STORES(text, variable) || find_slot(store, text, &variable)
#define FIND_IN_RECORDINGS(text, variable) || find_slot(recording, text, &variable)
    if (0 HANDLE_SLOTS(FIND_IN_HANDLES) STORE_SLOTS(FIND_IN_STORES) RECORDING_SLOTS(FIND_IN_RECORDINGS))
        return NULL;
    Example = PyTuple_GET_SIZE(dtypes) ? PyObject_CallFunction(store, "()O", PyTuple_GET_ITEM(dtypes, 0)) : NULL;
    if (Example == NULL)
        return NULL;
    Wrapped = (PyTypeObject *)cls;
    PlainClass = (PyTypeObject *)Py_NewRef(array);
    if (replace_method(Wrapped, &ufunc_def, &Ufunc) || replace_method(Wrapped, &getitem_def, &Getitem) ||
        install_lifecycle() || install_attributes() BINARIES(FIND)
            FIND(nb_power, , "pow", )) {
        Wrapped = NULL;
        return NULL;
    }
    Py_INCREF(cls);
    SmallLimit = limit;
    Wrap = Py_NewRef(wrap);
    Scalars = Py_NewRef(scalars);
    Current = Py_NewRef(current);
    Stores = Py_NewRef(store);
    Recordings = (PyTypeObject *)Py_NewRef(recording);
    Axes = Py_NewRef(axes);
    Locate = Py_NewRef(locate);
    Options = Py_NewRef(config);
    Py_INCREF(Scoped);
    numbers = Wrapped->tp_as_number;
    BINARIES(REPLACE)
    REPLACE(nb_power, , "pow", )
    INPLACES(EXCHANGE)
    EXCHANGE(nb_inplace_power, )
    UNARIES(EXCHANGE)
    mapping = Wrapped->tp_as_mapping;
    mapping->mp_subscript = fast_subscript;
    slow_assign = mapping->mp_ass_subscript;
    mapping->mp_ass_subscript = fast_assign;
    if (PyType_Ready(&ExportType) < 0)
        return NULL;
    Wrapped->tp_as_buffer->bf_getbuffer = get_buffer;
    slow_compare = Wrapped->tp_richcompare;
    Wrapped->tp_richcompare = fast_compare;
    PyType_Modified(Wrapped);
    Py_RETURN_TRUE;
}

/* adopt_device_class(cls): give a class of arrays on a device the operators in C, which record its calls; those of Python
 * do the rest. */
static PyObject *
adopt_device_class(PyObject *module, PyObject *cls)
{
    PyTypeObject *type = (PyTypeObject *)cls;
    PyNumberMethods *numbers;
    if (Wrapped == NULL)
        Py_RETURN_NONE;
    if (!PyType_Check(cls) || !PyType_IsSubtype(type, Wrapped) || !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) {
        PyErr_SetString(PyExc_TypeError, "a class of wrapped arrays is wanted");
        return NULL;
    }
    if (DeviceUfunc == NULL && (replace_method(type->tp_base, &device_getitem_def, &DeviceGetitem) ||
                                replace_method(type->tp_base, &device_ufunc_def, &DeviceUfunc)))
        return NULL;
    numbers = type->tp_as_number;
#define GIVE(slot, ...) numbers->slot = fast_##slot;
    BINARIES(GIVE)
    INPLACES(GIVE)
    UNARIES(GIVE)
    type->tp_richcompare = fast_compare;
    type->tp_as_mapping->mp_subscript = device_subscript;
    type->tp_as_mapping->mp_ass_subscript = device_assign;
    PyType_Modified(type);
    Py_RETURN_NONE;
}

/* know_arrays(): find NumPy's class of arrays, for the checks of plain ones; a program without NumPy has none. */
static PyObject *
know_arrays(PyObject *module, PyObject *nothing)
{
    PyObject *numpy = PyImport_ImportModule("numpy"), *array = numpy == NULL ? NULL : PyObject_GetAttrString(numpy, "ndarray");
    int known = array == NULL ? -1 : has_known_layout(array);
    Py_XDECREF(numpy);
    if (known > 0)
        PlainClass = (PyTypeObject *)array; /* for good */
    else
        Py_XDECREF(array);
    return known < 0 ? NULL : Py_NewRef(Py_None);
}

/* What the functions take and return is said where they are defined. */
#define METHOD(name, function, flags) {name, (PyCFunction)(void (*)(void))function, flags, NULL},
static PyMethodDef methods[] = {
    METHOD("install", install, METH_VARARGS)
    METHOD("slice_window", slice_window, METH_FASTCALL)
    METHOD("index_window", index_window, METH_FASTCALL)
    METHOD("set_routes", set_routes, METH_VARARGS)
    METHOD("make_creation_route", make_creation_route, METH_VARARGS)
    METHOD("make_route", make_route, METH_VARARGS)
    METHOD("find_loops", find_loops, METH_VARARGS)
    METHOD("know_arrays", know_arrays, METH_NOARGS)
    METHOD("run_as_first", run_as_first, METH_VARARGS)
    METHOD("set_kept_memory", set_kept_memory, METH_VARARGS)
    METHOD("kept_memory", kept_memory, METH_NOARGS)
    METHOD("share_loops", share_loops, METH_VARARGS)
    METHOD("call_ufuncs_by_loops", call_ufuncs_by_loops, METH_VARARGS)
    METHOD("reduce_by_loops", reduce_by_loops, METH_VARARGS)
    METHOD("shared_runs", shared_runs, METH_NOARGS)
    METHOD("launch", run_launch, METH_FASTCALL)
    METHOD("repeat", run_repeat, METH_VARARGS)
    METHOD("has_threads", has_threads, METH_NOARGS)
    METHOD("judge_sharing", judge_sharing, METH_VARARGS)
    METHOD("wrap", wrap_value, METH_O)
    METHOD("set_families", set_families, METH_VARARGS)
    METHOD("dict_fingerprint", dict_fingerprint, METH_O)
    METHOD("checks_hold", checks_hold, METH_FASTCALL)
    METHOD("read_numbers", read_numbers, METH_VARARGS)
    METHOD("write_numbers", write_numbers, METH_VARARGS)
    METHOD("route_instances", route_instances, METH_VARARGS)
    METHOD("make_choice", make_choice, METH_O)
    METHOD("choose_by_loops", choose_by_loops, METH_VARARGS)
    METHOD("record", record, METH_FASTCALL)
    METHOD("commit", commit, METH_FASTCALL)
    METHOD("enter", enter, METH_FASTCALL)
    METHOD("set_recorder", set_recorder, METH_O)
    METHOD("adopt_device_class", adopt_device_class, METH_O)
    METHOD("split", split_log, METH_O)
    METHOD("make_short_run", make_short_run, METH_VARARGS)
    METHOD("make_object_run", make_object_run, METH_VARARGS)
    METHOD("rest", rest, METH_O)
    METHOD("end_rest", end_rest, METH_NOARGS)
    METHOD("hold_collections", hold_collections, METH_NOARGS)
    METHOD("kept", kept, METH_O)
    METHOD("weak", weak, METH_O)
    METHOD("release_collections", release_collections, METH_NOARGS)
    METHOD("waiting", waiting, METH_FASTCALL)
    METHOD("without_collections", without_collections, METH_FASTCALL)
    METHOD("is_readable", is_readable, METH_FASTCALL)
    METHOD("forget_holds", forget_holds, METH_NOARGS)
    METHOD("chains", chains_of_threads, METH_VARARGS)
    METHOD("have_done", have_done, METH_O)
    METHOD("listen", listen_to_tools, METH_NOARGS)
    METHOD("hold", hold, METH_O)
    METHOD("may_stop", may_stop, METH_O)
    METHOD("set_stop", set_stop, METH_O)
    METHOD("make_evaluate_route", make_evaluate_route, METH_O)
    {NULL, NULL, 0, NULL}};

static int
fill_module(PyObject *module)
{
#define MAKE_NAME(variable, text) || (variable = PyUnicode_InternFromString(text)) == NULL
    PyObject *gc = PyImport_ImportModule("gc");
    if (gc == NULL || (GetThreshold = PyObject_GetAttrString(gc, "get_threshold")) == NULL ||
        (SetThreshold = PyObject_GetAttrString(gc, "set_threshold")) == NULL || 0 NAMES(MAKE_NAME))
        return -1;
    return PyModule_AddIntConstant(module, "REVISION", 79) < 0 || PyModule_AddType(module, &BoundNameType) < 0 || add_constants(module) < 0 ? -1 : 0;
}

/* What is static here is guarded by the interpreter's lock, which a Python without one takes for this module, and there is
 * one of it for all interpreters. */
static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, fill_module},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030D0000
    {Py_mod_gil, Py_MOD_GIL_USED},
#endif
    {0, NULL}};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "dcarray._native.extension", .m_methods = methods,
                                 .m_slots = slots};

PyMODINIT_FUNC
PyInit_extension(void)
{
    return PyModuleDef_Init(&definition);
}
