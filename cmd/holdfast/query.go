package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/cmd/holdfast/internal/client"
	"holdfast/shared/value"
)

// pageSize is how many documents are asked for at once where all are wanted.
const pageSize = 500

// querying are the flags of the command.
type querying struct {
	connection
	output
	filter    string
	sort      []string
	fields    []string
	where     string
	scan      bool
	verified  bool
	limit     int
	after     string
	all       bool
	count     bool
	tokens    []string
	asOfNow   bool
	timeout   string
	onTimeout string
	explain   bool
}

func newQuery() *cobra.Command {
	var q querying
	c := &cobra.Command{
		Use:   "query COLLECTION [FIELD=VALUE…]",
		Short: "Find documents of a collection",
		Long: `Finds the documents for which all conditions hold. A condition is a field, a
sign and a value: = != > >= < <=. Values are JSON where they look like it:
numbers, true, false, null and "quoted text"; everything else is text. So
zip=82520 looks for the number and 'zip="82520"' for the text. =null finds null
and missing. A field is a path (address.city, lines.0.price, lines[].price), a
pointer for names with dots (/a.b), or one of $id, $root, $version, $createdAt,
$updatedAt. What conditions cannot say, --filter says in MongoDB's vocabulary.

Standard error says how current the answer is. Outputs: table; ndjson, one
document a line; json, one object {"documents":[…],"count":…,"next":…,
"staleness":{…}}.

With --explain nothing is searched: it shows where the collections are read, what
the index decides and what the documents, and the query that OpenSearch is sent.
Outputs: table; json, the answer as it is.`,
		Example: `  holdfast query movies 'Major Genre=Drama' 'US Gross>1000000' --sort 'US Gross:desc'
  holdfast query customers/orders --filter '{"lines":{"$exists":true}}' --all --output ndjson
  holdfast query users 'name="42"' --fields name,address.city --count
  holdfast query customers/orders 'shipAddress.country=France' --where 'doc.shippedDate > doc.requiredDate'
  holdfast query users --limit 0 --count --output json | jq .count.value
  holdfast query users 'age>=30' --explain
  token=$(holdfast put users/1 user.json | jq -r .token)
  holdfast query users --wait "$token" --timeout 10s`,
		Args: takes(cobra.MinimumNArgs(1)),
		RunE: runs(func(ctx context.Context, c *cobra.Command, args []string) error {
			return q.run(ctx, c, args[0], args[1:])
		}),
	}
	q.connection.register(c)
	q.output.register(c, "table", "json", "ndjson")
	f := c.Flags()
	f.StringVar(&q.filter, "filter", "", "a filter as JSON, which must hold besides the conditions")
	f.StringArrayVar(&q.sort, "sort", nil, "sort by FIELD, FIELD:asc or FIELD:desc; may be given again for the next key (default: by id)")
	f.StringSliceVar(&q.fields, "fields", nil, "show only these paths, joined by commas")
	f.StringVar(&q.where, "where", "", "an expression in CEL over doc that must hold besides, such as 'doc.a > doc.b'")
	f.BoolVar(&q.scan, "scan", false, "let --where look at all documents, where no condition narrows them down")
	f.BoolVar(&q.verified, "verified", false, "load each match again and leave out those that match no longer")
	f.IntVar(&q.limit, "limit", 25, "most documents, 0 to 1000")
	f.StringVar(&q.after, "after", "", "go on where an answer ended: its next")
	f.BoolVar(&q.all, "all", false, "all documents, page after page")
	f.BoolVar(&q.count, "count", false, "also count all that match")
	f.StringArrayVar(&q.tokens, "wait", nil, "wait until the write that gave this token is found; may be given again")
	f.BoolVar(&q.asOfNow, "as-of-now", false, "wait until everything written before this query is found")
	f.StringVar(&q.timeout, "timeout", "", "how long --wait or --as-of-now waits at most, such as 500ms or 20s (default 5s)")
	f.StringVar(&q.onTimeout, "on-timeout", "", "then: error, or stale for the answer as it is (default error)")
	complete(c, "on-timeout", "error", "stale")
	f.BoolVar(&q.explain, "explain", false, "show what the query becomes, and search nothing")
	return c
}

func (q *querying) run(ctx context.Context, c *cobra.Command, collection string, conditions []string) error {
	err := errors.Join(q.output.check(c), exclude(c, [2]string{"all", "limit"}, [2]string{"all", "after"},
		[2]string{"explain", "all"}, [2]string{"explain", "wait"}, [2]string{"explain", "as-of-now"}))
	if err != nil {
		return err
	}
	if q.explain && q.format == "ndjson" {
		return misuse(c, "--explain shows no documents: --output is table or json")
	}
	waits := len(q.tokens) > 0 || q.asOfNow
	if !waits && (q.timeout != "" || q.onTimeout != "") {
		return misuse(c, "--timeout and --on-timeout are about --wait and --as-of-now")
	}
	if q.scan && q.where == "" {
		return misuse(c, "--scan is about --where")
	}
	ask := client.Query{
		From: collection, After: q.after, Count: q.count, Limit: &q.limit,
		Where: q.where, Scan: q.scan, Fields: q.fields,
	}
	if q.verified {
		ask.Read = "verified"
	}
	if q.all {
		size := pageSize
		ask.Limit = &size
	}
	if ask.Filter, err = buildFilter(q.filter, conditions); err != nil {
		return misuse(c, "%w", err)
	}
	if ask.Sort, err = parseSortKeys(q.sort); err != nil {
		return misuse(c, "%w", err)
	}
	for _, text := range q.fields {
		if _, err := value.ParsePath(text); err != nil {
			return misuse(c, "--fields: %s", detailOf(err))
		}
	}
	if waits {
		ask.Wait = &client.Wait{Tokens: append([]string{}, q.tokens...), AsOfNow: q.asOfNow, Timeout: q.timeout, OnTimeout: q.onTimeout}
	}
	api, err := q.open(ctx, c, shortPatience, false)
	if err != nil {
		return err
	}
	if q.explain {
		return explainQuery(ctx, c, api, ask, q.format)
	}
	w := bufio.NewWriter(c.OutOrStdout())
	answer := &answering{command: c, w: w, format: q.format, fields: q.fields}
	for {
		found, err := api.Query(ctx, ask)
		if err != nil {
			return errors.Join(err, w.Flush())
		}
		more := q.all && found.Next != ""
		if err := answer.page(found, !more); err != nil {
			return err
		}
		if err := w.Flush(); err != nil {
			return err
		}
		if !more {
			return nil
		}
		ask.After, ask.Wait, ask.Count = found.Next, nil, false
	}
}

// answering writes an answer, page after page.
type answering struct {
	command *cobra.Command
	w       io.Writer
	format  string
	fields  []string

	table    *table
	written  int
	begun    bool // the format json: its object
	examined int64
	first    *client.Found // the first page, which tells the count
}

func (a *answering) page(f client.Found, last bool) error {
	if a.first == nil {
		a.first = &client.Found{Count: f.Count}
	}
	var err error
	switch a.format {
	case "json":
		err = a.pageJSON(f, last)
	case "ndjson":
		for _, d := range f.Documents {
			if err = writeJSON(a.w, d); err != nil {
				return err
			}
		}
	default:
		if a.table == nil && len(f.Documents) > 0 {
			a.table = newTable(a.command, f.Documents, a.fields)
		}
		if a.table != nil {
			err = a.table.write(a.w, f.Documents)
		}
	}
	a.written += len(f.Documents)
	if err == nil && last {
		a.tell(f)
	}
	return err
}

// pageJSON writes a piece of one object that holds all documents.
func (a *answering) pageJSON(f client.Found, last bool) error {
	var b strings.Builder
	if !a.begun { // a page may be empty although more follow
		a.begun = true
		b.WriteString(`{"documents":[`)
	}
	if n, err := f.Examined.Int64(); err == nil {
		a.examined += n
	}
	for i, d := range f.Documents {
		if a.written+i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		if err := writeJSON(&b, d); err != nil {
			return err
		}
	}
	if last {
		end := struct {
			Count     any             `json:"count,omitempty"`
			Examined  int64           `json:"examined,omitempty"`
			Next      string          `json:"next,omitempty"`
			Staleness json.RawMessage `json:"staleness,omitempty"`
		}{Examined: a.examined, Next: f.Next, Staleness: f.Staleness}
		if a.first.Count != nil {
			end.Count = a.first.Count
		}
		text, err := json.Marshal(end)
		if err != nil {
			return err
		}
		b.WriteString("]")
		if len(text) > len("{}") {
			b.WriteString("," + string(text[1:]))
		} else {
			b.WriteString("}")
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(a.w, b.String())
	return err
}

// tell says on standard error what is no document.
func (a *answering) tell(f client.Found) {
	line := fmt.Sprintf("%d documents", a.written)
	if a.written == 1 {
		line = "1 document"
	}
	if n := a.first.Count; n != nil {
		line += " of " + n.Value.String()
		if !n.Exact {
			line += " (about)"
		}
	}
	if f.Next != "" && a.format == "table" {
		line += "; there are more: --all, or --after " + f.Next
	} else if f.Next != "" {
		line += "; there are more"
	}
	note(a.command, "%s. %s", line, f.Notice())
}
