/* Op sequences whose steps NumPy's own inner loops do, a block of elements through all steps and then the next, and
 * what a sum or the like makes of them; see op_sequences.py.
 *
 * What is between two steps stays in the nearest cache, and what is summed is never stored.  Loops work on one element
 * at a time as far as anybody can see, so that blocks change nothing; and sums are NumPy's to the last bit, since the
 * blocks are where its pairwise summation divides. */

enum { BLOCK = 2048, WIDEST = 8 }; /* elements, and bytes of one */

static PyObject *Folds; /* a dict: which of these functions and names of methods do */

typedef struct {
    OpSequence *sequence;
    char *arrays[ARRAYS], numbers[NUMBERS][16];
    PyObject *held[ARRAYS]; /* their memory */
    char *whole;            /* where what the last step makes is to be, or NULL */
    int raised, fold;
    char letter; /* of what the last step makes */
    Inner *code; /* the loop of the ufunc that folds it */
    void *data;
    char parts[STEPS][BLOCK * WIDEST];
} Work;

/* The loops of the steps, and where what they make is kept: 0, without an exception, if there are not all. */
static int
find_steps(OpSequence *c)
{
    for (int k = 0; k < c->steps; k++) {
        Operation *o = c->operations + k;
        Loop loop = {0};
        char letters[2] = {0};
        int found;
        for (int j = 0; j < 2 && o->kinds[j]; j++) {
            int which = o->which[j];
            if (o->kinds[j] == 'r' ? which >= k : which >= (o->kinds[j] == 'a' ? c->arrays : c->numbers))
                return 0;
            letters[j] = o->kinds[j] == 'a'   ? c->letters[which]
                         : o->kinds[j] == 'n' ? c->loops[which]
                                              : ((Descr *)c->operations[which].dtype)->type;
            o->widths[j] = Known[letters[j] & 127].width;
        }
        found = find_loop(&loop, o->ufunc, letters[0], letters[1]) && loop.result != NULL && loop.result == o->dtype;
        Py_XDECREF(loop.ufunc);
        o->code = loop.code;
        o->data = loop.data;
        o->width = Known[((Descr *)o->dtype)->type & 127].width;
        if (!found || o->width > WIDEST)
            return 0;
    }
    for (int k = 0; k < c->steps; k++) { /* what is not needed any more makes room */
        for (int part = 0, taken = 1; taken; part++) {
            taken = 0;
            for (int j = 0; j < k; j++)
                for (int user = k; user < c->steps && c->operations[j].part == part; user++)
                    for (int i = 0; i < 2; i++)
                        taken |= c->operations[user].kinds[i] == 'r' && c->operations[user].which[i] == j;
            c->operations[k].part = part;
        }
    }
    return 1;
}

/* All steps for some elements. */
static void
do_block(Work *w, Py_ssize_t at, Py_ssize_t n)
{
    OpSequence *c = w->sequence;
    for (int k = 0; k < c->steps; k++) {
        Operation *o = c->operations + k;
        char *pointers[3];
        Py_ssize_t strides[3];
        int count = o->kinds[1] ? 2 : 1;
        for (int j = 0; j < count; j++) {
            int which = o->which[j];
            strides[j] = o->kinds[j] == 'n' ? 0 : o->widths[j];
            pointers[j] = o->kinds[j] == 'a'   ? w->arrays[which] + at * strides[j]
                          : o->kinds[j] == 'n' ? w->numbers[which]
                                               : w->parts[c->operations[which].part];
        }
        strides[count] = o->width;
        pointers[count] = k == c->steps - 1 && w->whole != NULL ? w->whole + at * o->width : w->parts[o->part];
        o->code(pointers, &n, strides, o->data);
        w->raised |= fetestexcept(FLAGS); /* some loops begin and end without any */
    }
}

/* The sum of some elements, divided as NumPy's pairwise summation divides them. */
static double
sum_of_pairs(Work *w, Py_ssize_t at, Py_ssize_t n)
{
    Py_ssize_t half = n / 2;
    if (n > BLOCK) {
        half -= half % 8;
        double first = sum_of_pairs(w, at, half), second = sum_of_pairs(w, at + half, n - half);
        double both = w->letter == 'd' ? first + second : (double)((float)first + (float)second);
        w->raised |= fetestexcept(FLAGS);
        return both;
    }
    union {
        double real;
        float single;
    } sum;
    char *pointers[3] = {(char *)&sum, w->parts[w->sequence->operations[w->sequence->steps - 1].part], (char *)&sum};
    Py_ssize_t strides[3] = {0, w->sequence->operations[w->sequence->steps - 1].width, 0};
    do_block(w, at, n);
    if (w->letter == 'd')
        sum.real = -0.0; /* which changes nothing */
    else
        sum.single = -0.0f;
    w->code(pointers, &n, strides, w->data);
    w->raised |= fetestexcept(FLAGS);
    return w->letter == 'd' ? sum.real : (double)sum.single;
}

/* How many of these bytes, each 0 or 1, are 1?  At most `BLOCK`. */
static Py_ssize_t
count_true(const char *part, Py_ssize_t n)
{
    const uint64_t low = 0x00ff00ff00ff00ffu;
    Py_ssize_t count = 0, k = 0;
    while (k + 32 <= n) {
        Py_ssize_t turns = (n - k) / 32 < 60 ? (n - k) / 32 : 60;
        uint64_t sums[4] = {0}, all, words[4];
        for (Py_ssize_t turn = 0; turn < turns; turn++, k += 32) {
            memcpy(words, part + k, 32);
            for (int j = 0; j < 4; j++)
                sums[j] += words[j]; /* in each byte by itself */
        }
        all = sums[0] + sums[1] + sums[2] + sums[3]; /* at most 240 in a byte */
        count += (Py_ssize_t)(((all & low) + (all >> 8 & low)) * 0x0001000100010001u >> 48);
    }
    for (; k < n; k++)
        count += part[k];
    return count;
}

/* What is not a sum of pairs, block by block, into `result`. */
static void
reduce_in_order(Work *w, Py_ssize_t n, char *result)
{
    Py_ssize_t width = w->sequence->operations[w->sequence->steps - 1].width, many;
    char *part = w->parts[w->sequence->operations[w->sequence->steps - 1].part];
    int64_t count = 0;
    for (Py_ssize_t at = 0; at < n; at += many) {
        many = n - at < BLOCK ? n - at : BLOCK;
        do_block(w, at, many);
        if (w->code != NULL) {
            Py_ssize_t first = at == 0, rest = many - first, strides[3] = {0, width, 0};
            char *pointers[3] = {result, part + first * width, result};
            if (first)
                memcpy(result, part, width);
            w->code(pointers, &rest, strides, w->data);
        }
        else if (w->fold == ANY || w->fold == ALL) {
            if (!count)
                count = memchr(part, w->fold == ANY, many) != NULL;
            if (count && w->sequence->steps == 1) /* what compares raises nothing; what came before it may */
                break;
        }
        else
            count += count_true(part, many);
    }
    if (w->code == NULL)
        memcpy(result, &count, sizeof(count));
}

/* Begin to work on what a deferred sequence has: 0, without an exception, if that cannot be. */
static int
begin_work(Work *w, Deferred *s)
{
    OpSequence *c = s->sequence;
    w->sequence = c;
    w->raised = 0;
    w->whole = NULL;
    w->code = NULL;
    for (int k = 0; k < c->numbers; k++)
        if (s->numbers[k] == NULL || !store_number(s->numbers[k], (Descr *)Known[(int)c->loops[k]].dtype, w->numbers[k]))
            return 0;
    for (int k = 0; k < c->arrays; k++)
        if (s->stores[k] == NULL || Py_TYPE(AT(s->stores[k], Mem)) != PlainClass)
            return 0;
    for (int k = 0; k < c->arrays; k++) {
        w->held[k] = Py_NewRef(AT(s->stores[k], Mem));
        w->arrays[k] = ((Array *)w->held[k])->data + s->skipped[k];
    }
    clear_flags();
    return 1;
}

/* Is nothing to be said of it? */
static int
end_work(Work *w)
{
    for (int k = 0; k < w->sequence->arrays; k++)
        Py_DECREF(w->held[k]);
    if (w->raised)
        feclearexcept(FLAGS);
    return !(numpy_bits(w->raised) & w->sequence->mask);
}

/* Do all steps into memory: 1, or 0 if that is to be recorded. */
static int
run_blocks(Deferred *s, char *whole)
{
    Work w;
    Py_ssize_t n = s->size, many;
    PyThreadState *state;
    if (!begin_work(&w, s))
        return 0;
    w.whole = whole;
    state = PyEval_SaveThread();
    for (Py_ssize_t at = 0; at < n; at += many) {
        many = n - at < BLOCK ? n - at : BLOCK;
        do_block(&w, at, many);
    }
    PyEval_RestoreThread(state);
    return end_work(&w);
}

/* A scalar of NumPy's. */
static PyObject *
scalar_of(char letter, const void *value)
{
    PyObject *r = NewArray(PlainClass, Py_NewRef(Known[(int)letter].dtype), 0, NULL, NULL, NULL, 0, NULL);
    if (r == NULL)
        return NULL;
    memcpy(((Array *)r)->data, value, Known[(int)letter].width);
    return AsResult(r);
}

/* What a sum or the like gives of all that a deferred sequence is to compute; NULL, without an exception, if it is to
 * be computed. */
static PyObject *
reduce_blocks(Deferred *s, int fold)
{
    OpSequence *c = s->sequence;
    Work w;
    char letter = ((Descr *)c->operations[c->steps - 1].dtype)->type, result[16] = {0};
    int truths = letter == '?', pairs = (fold == SUM || fold == MEAN) && (letter == 'd' || letter == 'f');
    PyObject *ufunc = pairs || (fold == SUM && letter == 'l') ? np_add
                      : fold == LARGEST_OF                    ? np_maximum
                      : fold == LEAST_OF                      ? np_minimum
                                                              : NULL;
    Loop *loop;
    PyThreadState *state;
    double mean;
    int64_t count;
    if (ufunc == NULL ? !truths || fold == LARGEST_OF || fold == LEAST_OF : AsResult == NULL || truths)
        return NULL;
    loop = ufunc == NULL ? NULL : loop_of(ufunc, letter, letter);
    if ((ufunc != NULL && (loop == NULL || ((Descr *)loop->result)->type != letter)) || !begin_work(&w, s))
        return NULL;
    w.fold = fold;
    w.letter = letter;
    if (loop != NULL) {
        w.code = loop->code;
        w.data = loop->data;
    }
    Py_INCREF(s);
    state = PyEval_SaveThread();
    if (pairs) {
        double sum = sum_of_pairs(&w, 0, s->size) + c->zero;
        float single = (float)sum;
        memcpy(result, letter == 'd' ? (char *)&sum : (char *)&single, letter == 'd' ? sizeof(sum) : sizeof(single));
        mean = sum / (double)s->size;
    }
    else
        reduce_in_order(&w, s->size, result);
    w.raised |= fetestexcept(FLAGS);
    PyEval_RestoreThread(state);
    s->folded = 1;
    if (!end_work(&w)) {
        Py_DECREF(s);
        return NULL;
    }
    if (pairs && fold == MEAN) {
        float single = (float)mean;
        Py_DECREF(s);
        return scalar_of(letter, letter == 'd' ? (void *)&mean : (void *)&single);
    }
    memcpy(&count, result, sizeof(count));
    mean = (double)count / (double)s->size;
    Py_DECREF(s);
    if (ufunc != NULL)
        return scalar_of(letter, result);
    if (fold == ANY || fold == ALL) {
        char truth = fold == ANY ? count != 0 : count == 0;
        return scalar_of('?', &truth);
    }
    return fold == MEAN ? scalar_of('d', &mean) : scalar_of('l', &count);
}
