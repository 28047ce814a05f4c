package httpapi

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"holdfast/shared/doc"
)

// Every kind of failure that package doc names has a status, a title and a
// schema in the contract, unless it belongs to a route that is not there.
func TestEveryKindIsAProblem(t *testing.T) {
	notAnswered := map[doc.Kind]bool{doc.BatchConflict: true, doc.DuplicateID: true, doc.ReindexRequired: true}
	file, err := parser.ParseFile(token.NewFileSet(), "../doc/errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []doc.Kind
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); ok && name.Name == "Kind" {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, doc.Kind(text))
		}
		return true
	})
	if len(kinds) < 20 {
		t.Fatalf("found %d kinds only", len(kinds))
	}
	for _, kind := range kinds {
		p, ok := problemKinds[kind]
		if !ok {
			t.Errorf("%s has no status", kind)
			continue
		}
		if (p.status == 429 || p.status == 503) != (p.retryAfter > 0) {
			t.Errorf("%s: status %d, Retry-After %d", kind, p.status, p.retryAfter)
		}
		schema := contract.Components.Schemas[string(kind)]
		if notAnswered[kind] {
			if schema != nil {
				t.Errorf("%s is described, but nothing answers with it", kind)
			}
			continue
		}
		if schema == nil {
			t.Errorf("%s is not in openapi.yaml", kind)
			continue
		}
		title, status := schema.Value.Properties["title"].Value.Const, schema.Value.Properties["status"].Value.Const
		if n, _ := status.(float64); title != p.title || int(n) != p.status {
			t.Errorf("%s: openapi.yaml says %v %v, not %d %s", kind, status, title, p.status, p.title)
		}
	}
}

// A problem stays small, whatever a client put into its request.
func TestProblemsDoNotEcho(t *testing.T) {
	h, _ := newDocuments()
	name := strings.Repeat("x", 3_000_000)
	a := send(t, h, "PUT", "/docs/users/1", `{"a":{"`+name+`":1,"`+name+`":2}}`).expect(t, 400, "invalid-json")
	if len(a.Body) > 5000 || a.json["pointer"] != "/a" {
		t.Errorf("%d bytes, pointer %.100v", len(a.Body), a.json["pointer"])
	}
	q, _ := newQuery()
	a = send(t, q, "POST", "/query", `{"from":"a","filter":{"a":{"$`+name+`":1}}}`).expect(t, 400, "invalid-query")
	if len(a.Body) > 5000 || a.json["pointer"] != "/filter/a" {
		t.Errorf("%d bytes, pointer %.100v", len(a.Body), a.json["pointer"])
	}
}

func TestMembersOfProblems(t *testing.T) {
	e := doc.Errorf(doc.VersionConflict, `say "no"`).With("expected", []doc.Version{1, 2}).With("actual", nil).With("odd", func() {})
	var got map[string]any
	if err := json.Unmarshal(problemOf(e, "r").append(nil), &got); err != nil {
		t.Fatal(err)
	}
	if _, there := got["odd"]; there || got["detail"] != `say "no"` || got["status"] != 412.0 || got["type"] != "/problems/version-conflict" || len(got["expected"].([]any)) != 2 {
		t.Errorf("%v", got)
	}
	if v, there := got["actual"]; !there || v != nil {
		t.Errorf("a member that is null is there: %v", got)
	}
}
