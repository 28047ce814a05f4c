package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"holdfast/shared/doc"
	"holdfast/shared/value"
)

// held is a live document as something shows it.
type held struct {
	version doc.Version
	sum     string // of its content; "" where that was not asked for
}

// standing is how the change feed shows a document.
type standing struct {
	version doc.Version
	deleted bool
}

// envelope is a document in an answer.
type envelope struct {
	ID      doc.ID
	Version doc.Version
	Data    json.RawMessage
}

func (e envelope) held() (held, error) {
	v, err := value.Decode(e.Data, value.MaxDepth)
	data, ok := v.(map[string]any)
	if err != nil || !ok {
		return held{}, fmt.Errorf("%s comes back as something that is no document: %v", e.ID, err)
	}
	return held{version: e.Version, sum: value.Sum(data)}, nil
}

// perLoad is how many ids one request to load takes, and loaders how many such
// requests are made at once.
const (
	perLoad = 100
	loaders = 3
)

// loaded are the documents of these ids that live, by strong loads.
func (a *api) loaded(ctx context.Context, ids []doc.ID) (map[doc.ID]held, error) {
	all := map[doc.ID]held{}
	chunks := make(chan []doc.ID)
	var mu sync.Mutex
	var first error
	var loading sync.WaitGroup
	for range loaders {
		loading.Go(func() {
			for chunk := range chunks {
				found, err := a.loadChunk(ctx, chunk)
				mu.Lock()
				maps.Copy(all, found)
				if first == nil {
					first = err
				}
				mu.Unlock()
			}
		})
	}
	for chunk := range slices.Chunk(ids, perLoad) {
		chunks <- chunk
	}
	close(chunks)
	loading.Wait()
	return all, first
}

// loadPage is an answer to a load. An absent document is nil.
type loadPage struct {
	Documents map[doc.ID]*envelope
	Remaining []doc.ID
}

// load loads documents, once.
func (a *api) load(ctx context.Context, ids []doc.ID) (page loadPage, err error) {
	body, err := json.Marshal(map[string]any{"ids": ids})
	if err != nil {
		return page, err
	}
	status, answer, err := a.send(ctx, http.MethodPost, "/load", nil, body)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("/load is answered with %d", status)
	}
	if err != nil {
		return page, err
	}
	return page, json.Unmarshal(answer, &page)
}

func (a *api) loadChunk(ctx context.Context, ids []doc.ID) (map[doc.ID]held, error) {
	found := map[doc.ID]held{}
	for len(ids) > 0 {
		var page loadPage
		if _, err := a.read(ctx, http.MethodPost, "/load", map[string]any{"ids": ids}, &page); err != nil {
			return nil, err
		}
		for id, e := range page.Documents {
			if e == nil {
				continue
			}
			h, err := e.held()
			if err != nil {
				return nil, err
			}
			found[id] = h
		}
		if len(page.Remaining) >= len(ids) {
			return nil, fmt.Errorf("none of %d documents was loaded", len(ids))
		}
		ids = page.Remaining
	}
	return found, nil
}

// changed is what the change feed shows of a collection, deletes included.
func (a *api) changed(ctx context.Context, c doc.Collection) (map[doc.ID]standing, error) {
	all := map[doc.ID]standing{}
	q := url.Values{"collection": {string(c)}, "limit": {"1000"}}
	for {
		var page struct {
			Changes []struct {
				ID      doc.ID
				Version doc.Version
				Deleted bool
			}
			Next string
		}
		if _, err := a.read(ctx, http.MethodGet, "/changes?"+q.Encode(), nil, &page); err != nil {
			return nil, err
		}
		news := false
		for _, change := range page.Changes {
			if s := all[change.ID]; change.Version > s.version {
				all[change.ID] = standing{change.Version, change.Deleted}
				news = true
			}
		}
		if !news { // also what may still gain predecessors was told, and is told again
			return all, nil
		}
		q.Set("after", page.Next)
	}
}

// found is a document as a query returns it.
type found struct {
	id doc.ID
	held
}

// queried are the documents that a query over collections finds, with or without
// their content. An id can occur more than once, which it should not.
func (a *api) queried(ctx context.Context, collections []doc.Collection, content bool) ([]found, error) {
	var all []found
	query := map[string]any{"from": collections, "limit": 1000}
	if !content {
		query["fields"] = []string{markName}
	}
	for {
		var page struct {
			Documents []envelope
			Next      string
		}
		if _, err := a.read(ctx, http.MethodPost, "/query", query, &page); err != nil {
			return nil, err
		}
		for _, e := range page.Documents {
			f := found{id: e.ID, held: held{version: e.Version}}
			if content {
				h, err := e.held()
				if err != nil {
					return nil, err
				}
				f.held = h
			}
			all = append(all, f)
		}
		if page.Next == "" {
			return all, nil
		}
		query["after"] = page.Next
	}
}
