package engines_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"holdfast/shared/local/engines"
	"holdfast/shared/local/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

var anybody = credentials.NewStaticCredentialsProvider("local", "local", "")

func newSet(t *testing.T, dir string, names ...engines.Name) *engines.Set {
	t.Helper()
	set, err := engines.NewSet(engines.Options{Cache: enginetest.Cache(), Dir: dir, Say: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Stop)
	if err := set.Start(t.Context(), names...); err != nil {
		t.Fatal(err)
	}
	return set
}

func sqsOf(set *engines.Set) *sqs.Client {
	return sqs.New(sqs.Options{Region: engines.Region, BaseEndpoint: aws.String(set.URL(engines.SQS)), Credentials: anybody, RetryMaxAttempts: 1})
}

// A message whose sending was acknowledged is there after kill -9 of the
// queue server, which is what the setting of its database is for.
func TestAcknowledgedMessagesSurviveAKill(t *testing.T) {
	set := enginetest.Private(t, engines.SQS)
	ctx, client := t.Context(), sqsOf(set)
	queue, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("q")})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	var senders sync.WaitGroup
	for w := range 4 {
		senders.Go(func() {
			for i := 0; ; i++ {
				var entries []types.SendMessageBatchRequestEntry
				for j := range 5 {
					entries = append(entries, types.SendMessageBatchRequestEntry{
						Id: aws.String(fmt.Sprint(j)), MessageBody: aws.String(fmt.Sprintf("%d-%d-%d", w, i, j))})
				}
				out, err := client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: queue.QueueUrl, Entries: entries})
				if err != nil {
					return // killed
				}
				mu.Lock()
				for _, s := range out.Successful {
					acknowledged[*entries[(*s.Id)[0]-'0'].MessageBody] = true
				}
				mu.Unlock()
			}
		})
	}
	for enough := 0; enough < 50; time.Sleep(10 * time.Millisecond) { // sends go on while it dies
		mu.Lock()
		enough = len(acknowledged)
		mu.Unlock()
	}
	if err := set.Kill(engines.SQS); err != nil {
		t.Fatal(err)
	}
	senders.Wait()
	if err := set.Await(ctx, engines.SQS); err != nil {
		t.Fatal(err)
	}
	for missing := len(acknowledged); missing > 0; {
		out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: queue.QueueUrl, MaxNumberOfMessages: 10, VisibilityTimeout: 600})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			t.Fatalf("%d acknowledged messages are gone", missing)
		}
		for _, m := range out.Messages {
			if acknowledged[*m.Body] {
				delete(acknowledged, *m.Body)
				missing--
			}
		}
	}
}

func TestAnEngineThatIsHaltedStaysDownUntilResumed(t *testing.T) {
	set := enginetest.Private(t, engines.DynamoDB)
	url := set.URL(engines.DynamoDB)
	if err := set.Halt(engines.DynamoDB); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond) // longer than the first pause
	if res, err := http.Get(url); err == nil {
		res.Body.Close()
		t.Error("a halted engine answers")
	}
	if err := set.Resume(engines.DynamoDB); err != nil {
		t.Fatal(err)
	}
	if err := set.Await(t.Context(), engines.DynamoDB); err != nil {
		t.Fatal(err)
	}
	res, err := http.Get(url)
	if err != nil {
		t.Fatalf("after resuming, at the same URL: %v", err)
	}
	res.Body.Close()
	if s := set.Status()[0]; s.Restarts != 1 || s.State != engines.Ready {
		t.Errorf("status %+v", s)
	}
}

// Every engine starts, dies, comes back at its place and ends when told to.
func TestAllEngines(t *testing.T) {
	if testing.Short() {
		t.Skip("needs engines")
	}
	dir := t.TempDir()
	set := newSet(t, dir)
	client := s3.New(s3.Options{Region: engines.Region, BaseEndpoint: aws.String(set.URL(engines.S3)), Credentials: anybody, UsePathStyle: true})
	ctx := t.Context()
	if _, err := client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String("kept")}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String("kept"), Key: aws.String("a/b"), Body: strings.NewReader("text")}); err != nil {
		t.Fatal(err)
	}
	if status, body := put(t, set.URL(engines.OpenSearch)+"/absent/_doc/1", "{}"); status != http.StatusNotFound {
		t.Errorf("writing to an absent index answers %d %s", status, body)
	}
	if status, body := put(t, set.URL(engines.OpenSearch)+"/present", "{}"); status != http.StatusOK {
		t.Errorf("making an index answers %d %s", status, body)
	}
	if status, body := put(t, set.URL(engines.OpenSearch)+"/present/_doc/1", "{}"); status != http.StatusCreated {
		t.Errorf("writing a document answers %d %s", status, body)
	}
	before := set.Status()
	for _, s := range before {
		if err := set.Kill(s.Name); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range before {
		if err := set.Await(ctx, s.Name); err != nil {
			t.Fatal(err)
		}
		if now := set.URL(s.Name); now != s.URL {
			t.Errorf("%s moved from %s to %s", s.Name, s.URL, now)
		}
	}
	if status, body := get(t, set.URL(engines.OpenSearch)+"/present/_doc/1"); status != http.StatusOK {
		t.Errorf("after a kill the document is answered with %d %s", status, body)
	}
	var pids []int
	for _, s := range set.Status() {
		if s.PID != 0 {
			pids = append(pids, s.PID)
		}
	}
	set.Stop()
	for _, pid := range pids {
		if syscall.Kill(pid, 0) == nil {
			t.Errorf("process %d is left", pid)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "data", "gofakes3", "buckets", "kept")); err != nil {
		t.Errorf("the bucket is not on disk: %v", err)
	}
}

func put(t *testing.T, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPut, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return do(t, req)
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, req)
}

func do(t *testing.T, req *http.Request) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	res, err := http.DefaultClient.Do(req.WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var b strings.Builder
	buf := make([]byte, 2000)
	n, _ := res.Body.Read(buf)
	b.Write(buf[:n])
	return res.StatusCode, b.String()
}
