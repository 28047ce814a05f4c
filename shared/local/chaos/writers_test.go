package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/value"
)

// What a writer was told about a line decides what the check may hold against
// the stack, so nothing but Holdfast's own word counts as a refusal.
func TestOutcomesAreWhatTheAnswerSays(t *testing.T) {
	lineOf := func(answer string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }
	}
	for name, c := range map[string]struct {
		answer  http.HandlerFunc
		outcome outcome
		told    string
		fails   bool
	}{
		"saved":           {lineOf(`{"line":1,"id":"orders/0","version":7}` + "\n" + `{"token":"t"}`), acknowledged, "", false},
		"throttled":       {lineOf(`{"line":1,"id":"orders/0","error":{"type":"/problems/throttled"}}`), refused, "throttled", false},
		"not tried":       {lineOf(`{"line":1,"id":"orders/0","error":{"type":"/problems/unavailable"}}`), refused, "unavailable", false},
		"nobody knows":    {lineOf(`{"line":1,"id":"orders/0","error":{"type":"/problems/outcome-unknown"}}`), unknown, "outcome-unknown", false},
		"an error inside": {lineOf(`{"line":1,"id":"orders/0","error":{"type":"/problems/internal"}}`), unknown, "internal", false},
		"never accepted":  {lineOf(`{"line":1,"id":"orders/0","error":{"type":"/problems/document-too-large"}}`), refused, "document-too-large", true},
		"another line":    {lineOf(`{"line":1,"id":"orders/9","version":7}`), unknown, "cut off", false},
		"cut":             {lineOf(`{"line":1,"id":"orders/0","ver`), unknown, "cut off", false},
		"the gateway's": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(503)
			_, _ = io.WriteString(w, `{"message":"Service Unavailable"}`)
		}, unknown, "503 of the gateway", false},
		"all refused": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(429)
			_, _ = io.WriteString(w, `{"type":"/problems/throttled"}`)
		}, refused, "throttled", false},
		"connection lost": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, unknown, "connection lost", false},
	} {
		server := httptest.NewServer(c.answer)
		w := writerAt(server.URL)
		_, err := w.bulk(t.Context(), w.lines([]int{0}))
		server.Close()
		got := w.ledger.writes["orders/0"]
		if len(got) != 1 || got[0].outcome != c.outcome || got[0].answer != c.told || (err != nil) != c.fails {
			t.Errorf("%s: %+v, %v", name, got, err)
			continue
		}
		if wanted := c.outcome != acknowledged && !c.fails; (len(w.again) == 1) != wanted {
			t.Errorf("%s: to be tried again: %v", name, w.again)
		}
	}
	server := httptest.NewServer(nil)
	server.Close()
	w := writerAt(server.URL)
	if _, err := w.bulk(t.Context(), w.lines([]int{0})); err != nil || w.ledger.writes["orders/0"][0].outcome != refused {
		t.Errorf("nobody there: %+v, %v", w.ledger.writes, err)
	}
}

func writerAt(url string) *writer {
	x := &run{began: time.Now(), ledger: newLedger(), api: newAPI()}
	x.api.moved(url)
	return &writer{run: x, intake: &intake{source: Made(10, 1)}, chance: rand.New(rand.NewPCG(1, 1))}
}

// Each write has a content of its own, and the document of a line is what is
// summed.
func TestWritesCanBeToldApart(t *testing.T) {
	w := writerAt("")
	sums := map[string]bool{}
	for n := range 10 {
		for range 3 {
			l := w.put(n)
			v, err := value.Decode(l.text, value.MaxDepth+1)
			if err != nil {
				t.Fatal(err)
			}
			line := v.(map[string]any)
			if line["id"] != string(l.id) || value.Sum(line["data"].(map[string]any)) != l.sum || sums[l.sum] {
				t.Errorf("%s: %s", l.id, l.text)
			}
			sums[l.sum] = true
		}
	}
}

func TestDocumentsComeAtTheirPace(t *testing.T) {
	in := &intake{source: Made(100, 1), begin: time.Minute, over: 10 * time.Second}
	got := 0
	for _, step := range []struct {
		age time.Duration
		all int
	}{{time.Minute, 0}, {61 * time.Second, 10}, {61 * time.Second, 10}, {65 * time.Second, 50}, {2 * time.Minute, 100}} {
		for {
			n := in.take(7, step.age)
			if len(n) == 0 {
				break
			}
			got += len(n)
		}
		if got != step.all || in.empty() != (got == 100) {
			t.Errorf("after %s: %d documents, empty %t", step.age, got, in.empty())
		}
	}
}

func TestMadeDocumentsAreAllOthersAndTheSameAgain(t *testing.T) {
	source := Made(700, 3)
	ids := map[doc.ID]bool{}
	for n := range source.Len() {
		id, data := source.Document(n)
		if _, err := doc.ParseID(string(id)); err != nil || ids[id] {
			t.Fatalf("%s: %v", id, err)
		}
		ids[id] = true
		if again, same := Made(700, 3).(made).Document(n); again != id || !value.Equal(same, data) {
			t.Errorf("%s is another one the second time", id)
		}
	}
}

func TestReadTakesLinesAsImportDoes(t *testing.T) {
	lines := func(texts ...string) func() ([]byte, error) {
		return func() ([]byte, error) {
			if len(texts) == 0 {
				return nil, io.EOF
			}
			text := texts[0]
			texts = texts[1:]
			if text == "!" {
				return nil, errors.New("torn")
			}
			return []byte(text), nil
		}
	}
	s, err := Read(lines(`{"id":"a/1","data":{"n":1.0}}`, "", `{"id":"a/1","data":{}}`, `{"id":"a/1/b/2","data":{}}`, `{"id":"c/1","data":{}}`), 2)
	if err != nil || s.Len() != 2 || fmt.Sprint(s.Collections()) != "[a a/b]" {
		t.Fatalf("%+v, %v", s, err)
	}
	if id, data := s.Document(0); id != "a/1" || string(value.Append(nil, data)) != `{"n":1}` {
		t.Errorf("%s %v", id, data)
	}
	for name, texts := range map[string][]string{
		"no documents": {}, "document 2": {`{"id":"a/1","data":{}}`, `{"id":"a/2"}`}, "document 1": {`{"id":"a","data":{}}`}, "torn": {"!"},
	} {
		if _, err := Read(lines(texts...), 0); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var many []string
	for i := range mostCollections + 1 {
		many = append(many, fmt.Sprintf(`{"id":"c%d/1","data":{}}`, i))
	}
	if _, err := Read(lines(many...), 0); err == nil {
		t.Error("more collections than a query looks at are taken")
	}
}

// A load in the middle is kept with what it showed.
func TestLooksAreKept(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !bytes.Contains(body, []byte(`"orders/1"`)) {
			t.Errorf("asked for %s", body)
		}
		_, _ = io.WriteString(w, `{"documents":{"orders/0":{"id":"orders/0","version":9,"data":{"a":1}},"orders/1":null}}`)
	}))
	defer server.Close()
	w := writerAt(server.URL)
	w.look(t.Context(), []line{w.put(0), w.put(1)})
	if len(w.ledger.sights) != 2 {
		t.Fatalf("%+v", w.ledger.sights)
	}
	for _, s := range w.ledger.sights {
		if s.live != (s.id == "orders/0") || s.live && (s.version != 9 || s.sum == "") {
			t.Errorf("%+v", s)
		}
	}
}
