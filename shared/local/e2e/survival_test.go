package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/local/engines"
)

// Engines are killed with SIGKILL while an import runs, each when it serves
// again. Afterwards every acknowledged document can be loaded at its version
// and, once the queue is drained, is found.
func TestNothingAcknowledgedIsLostWhenEnginesAreKilled(t *testing.T) {
	c := unique(t)
	const enough = 3 // kills, one of each
	imported := startImport(t, &base, c)
	for kills := range enough {
		engine := []engines.Name{engines.OpenSearch, engines.SQS, engines.DynamoDB}[kills%3]
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		err := stack.Engines().Await(ctx, engine)
		cancel()
		if err != nil {
			t.Fatalf("%s does not serve again: %v", engine, err)
		}
		time.Sleep(700 * time.Millisecond) // in the middle of its work
		if err := stack.Kill(string(engine)); err != nil {
			t.Fatalf("kill %s: %v", engine, err)
		}
	}
	all := imported.stop()
	t.Logf("%d documents acknowledged, %d kills", len(all), enough)
	checkLoadable(t, base, all)
	checkFindable(t, base, c, all)
}

// importing is an import that goes on until it is stopped.
type importing struct {
	base         *string
	ended        atomic.Bool
	running      sync.WaitGroup
	acknowledged []map[string]int64
}

// startImport writes documents from several clients; base may change meanwhile.
func startImport(t *testing.T, base *string, c string) *importing {
	const clients, perRound = 4, 25
	im := &importing{base: base, acknowledged: make([]map[string]int64, clients)}
	for w := range clients {
		im.acknowledged[w] = map[string]int64{}
		im.running.Go(func() {
			for round := 0; !im.ended.Load(); round++ {
				importRound(t, *base, im.acknowledged[w], c, w, round, perRound)
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	return im
}

// stop ends the import and gives the versions that were acknowledged.
func (im *importing) stop() map[string]int64 {
	im.ended.Store(true)
	im.running.Wait()
	all := map[string]int64{}
	for _, m := range im.acknowledged {
		maps.Copy(all, m)
	}
	return all
}

// importRound sends documents until each is acknowledged, as a careful client does.
func importRound(t *testing.T, base string, acknowledged map[string]int64, c string, w, round, n int) {
	waiting := map[string]string{}
	for i := range n {
		id := fmt.Sprintf("%s/%d-%d-%d", c, w, round, i)
		waiting[id] = fmt.Sprintf(`{"id":%q,"data":{"w":%d,"round":%d,"i":%d}}`, id, w, round, i)
	}
	for deadline := time.Now().Add(2 * time.Minute); len(waiting) > 0; {
		if time.Now().After(deadline) {
			t.Errorf("%d documents were not accepted in two minutes", len(waiting))
			return
		}
		body := strings.Join(slices.Collect(maps.Values(waiting)), "\n")
		a, err := trySendTo(base, "POST", "/bulk", body, "Content-Type", "application/x-ndjson")
		if err != nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		for line := range bytes.Lines(a.Body) {
			var r struct {
				ID      string
				Version int64
				Error   *struct{ Type string }
			}
			if json.Unmarshal(line, &r) == nil && r.Version > 0 && r.Error == nil {
				acknowledged[r.ID] = r.Version
				delete(waiting, r.ID)
			}
		}
		if len(waiting) > 0 {
			time.Sleep(100 * time.Millisecond)
		}
	}
}

func checkLoadable(t *testing.T, base string, all map[string]int64) {
	t.Helper()
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(all)), 100) {
		ids, _ := json.Marshal(chunk)
		var a answer
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
			var err error
			a, err = trySendTo(base, "POST", "/load", `{"ids":`+string(ids)+`}`)
			if err == nil && a.Status == 200 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("load: %v %s", err, a)
			}
		}
		var got struct {
			Documents map[string]*struct{ Version int64 }
		}
		if err := json.Unmarshal(a.Body, &got); err != nil {
			t.Fatal(err)
		}
		for _, id := range chunk {
			d := got.Documents[id]
			if d == nil || d.Version < all[id] {
				t.Errorf("%s: acknowledged at %d, loaded %+v", id, all[id], d)
			}
		}
	}
}

// checkFindable pages through the whole collection until all is there.
func checkFindable(t *testing.T, base, c string, all map[string]int64) {
	t.Helper()
	start := time.Now()
	var missing int
	for deadline := start.Add(3 * time.Minute); time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) {
		found, err := wholeCollection(base, c)
		if err != nil {
			continue
		}
		missing = 0
		for id, version := range all {
			if found[id] < version {
				missing++
			}
		}
		if missing == 0 {
			t.Logf("all found %.1f s after the import", time.Since(start).Seconds())
			return
		}
	}
	t.Errorf("%d of %d acknowledged documents were not found", missing, len(all))
}

func wholeCollection(base, c string) (map[string]int64, error) {
	found := map[string]int64{}
	after := ""
	for {
		a, err := trySendTo(base, "POST", "/query", fmt.Sprintf(`{"from":%q,"limit":1000%s}`, c, after))
		if err != nil {
			return nil, err
		}
		var page struct {
			Documents []struct {
				ID      string
				Version int64
			}
			Next string
		}
		if a.Status != 200 {
			return nil, fmt.Errorf("%s", a)
		}
		if err := json.Unmarshal(a.Body, &page); err != nil {
			return nil, err
		}
		for _, d := range page.Documents {
			found[d.ID] = d.Version
		}
		if page.Next == "" {
			return found, nil
		}
		after = fmt.Sprintf(`,"after":%q`, page.Next)
	}
}

// OpenSearch forgets the versions of deleted documents, after index.gc_deletes
// and when it restarts. A delete of ours is not one of those.
func TestALateOlderWriteCannotUndoADelete(t *testing.T) {
	c := unique(t)
	first := put(t, c+"/1", `{"old":true}`)
	gone := send(t, "DELETE", "/docs/"+c+"/1", "")
	wait := fmt.Sprintf(`{"from":%q,"wait":{"tokens":[%q],"timeout":"20s"}}`, c, gone.Header.Get("Holdfast-Token"))
	if found := query(t, wait); len(found.ids()) != 0 {
		t.Fatalf("the delete is not in the index: %s", found)
	}
	index := collection.Generation{Family: collection.SharedFamily, Number: 1}.IndexName("holdfast")
	openSearch(t, "PUT", "/"+index+"/_settings", `{"index.gc_deletes":"100ms"}`)
	time.Sleep(time.Second)
	if err := stack.Kill(string(engines.OpenSearch)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if err := stack.Engines().Await(ctx, engines.OpenSearch); err != nil {
		t.Fatal(err)
	}
	late := fmt.Sprintf(`{"index":{"_index":%q,"_id":%q,"version":%v,"version_type":"external_gte"}}`+"\n"+`{"$id":%q,"$collection":%q,"$version":%v}`+"\n",
		index, c+"/1", first.JSON("version"), c+"/1", c, first.JSON("version"))
	if got := openSearch(t, "POST", "/_bulk?refresh=true", late); !strings.Contains(got, "version_conflict_engine_exception") {
		t.Errorf("the late write was taken: %s", got)
	}
	if found := query(t, fmt.Sprintf(`{"from":%q}`, c)); len(found.ids()) != 0 {
		t.Errorf("the document is back: %s", found)
	}
	back := put(t, c+"/1", `{"new":true}`)
	wait = fmt.Sprintf(`{"from":%q,"filter":{"new":true},"wait":{"tokens":[%q],"timeout":"20s"}}`, c, back.Header.Get("Holdfast-Token"))
	if found := query(t, wait); len(found.ids()) != 1 {
		t.Errorf("the re-creation is not in the index: %s", found)
	}
}

// openSearch asks the stack's OpenSearch itself.
func openSearch(t *testing.T, method, path, body string) string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		a, err := trySendTo(stack.Engines().URL(engines.OpenSearch), method, path, body)
		if err == nil && a.Status == 200 {
			return string(a.Body)
		}
		if time.Now().After(deadline) {
			t.Fatalf("OpenSearch: %v %s", err, a)
		}
	}
}
