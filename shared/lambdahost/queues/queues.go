// Package queues opens a deployment's queues. It is apart from lambdahost so that
// a function without queues does not carry their client: what a binary carries is
// prepared at every start, used or not.
package queues

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"holdfast/shared/httpapi"
	"holdfast/shared/lambdahost"
	"holdfast/shared/pipeline"
	"holdfast/shared/pipeline/sqsqueue"
)

// opened are the queues that one client of Amazon SQS reaches.
type opened struct{ client *sqs.Client }

// Open makes the client, for AWS or for another endpoint. It makes no request.
func Open(conf aws.Config, endpoint string) lambdahost.Queues {
	return opened{sqs.NewFromConfig(conf, func(o *sqs.Options) {
		if endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
		}
	})}
}

// Signals implements lambdahost.Queues.
func (o opened) Signals(url string) pipeline.Queue { return sqsqueue.New(o.client, url) }

// Letters implements lambdahost.Queues.
func (o opened) Letters(signals, relay string, to pipeline.Sender) httpapi.DeadLetters {
	return sqsqueue.NewDeadLetters(o.client, signals, relay, to)
}
