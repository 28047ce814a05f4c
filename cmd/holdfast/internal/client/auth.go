package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
)

// Authorizer proves to the endpoint who is asking.
type Authorizer interface {
	// Authorize adds what the request needs. It may call out for credentials.
	Authorize(ctx context.Context, r *http.Request, body []byte) error
	// Describe says in a few words what is used, without secrets.
	Describe() string
}

// Signing is AWS Signature Version 4 for an API with IAM authorisation.
type Signing struct {
	Credentials aws.CredentialsProvider
	Region      string
	Profile     string // only for Describe
	Now         func() time.Time

	signer *v4.Signer
}

// signingName is the service that API Gateway's requests are signed for.
const signingName = "execute-api"

// NewSigning finds credentials and a region the way AWS's own tools do: from
// the environment, the shared files (a profile of them, if it is not ""), or
// the machine's role. A region that is not given and not configured is taken
// from the endpoint's host, where API Gateway puts it. With metadata false the
// machine is not asked for a role, so that nobody is called who may not be
// there.
func NewSigning(ctx context.Context, endpoint, profile, region string, metadata bool) (*Signing, error) {
	cfg, err := LoadAWS(ctx, profile, region, metadata)
	if err != nil {
		return nil, err
	}
	s := &Signing{Credentials: cfg.Credentials, Region: cfg.Region, Profile: profile, Now: time.Now, signer: v4.NewSigner()}
	if at := regionOf(endpoint); region == "" && at != "" {
		// A request is signed for where the API is, wherever its caller works.
		s.Region = at
	}
	if s.Region == "" {
		return nil, errors.New("requests to https are signed, and the endpoint does not tell its AWS region; name it with --region, or use a token with --token-file")
	}
	if _, err := s.Credentials.Retrieve(ctx); err != nil {
		return nil, fmt.Errorf("no AWS credentials to sign requests with (name a profile with --profile, or use a token with --token-file): %w", err)
	}
	return s, nil
}

// LoadAWS reads AWS's configuration.
func LoadAWS(ctx context.Context, profile, region string, metadata bool) (aws.Config, error) {
	var options []func(*config.LoadOptions) error
	if profile != "" {
		options = append(options, config.WithSharedConfigProfile(profile))
	}
	if region != "" {
		options = append(options, config.WithRegion(region))
	}
	if !metadata {
		options = append(options, config.WithEC2IMDSClientEnableState(imds.ClientDisabled))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return aws.Config{}, fmt.Errorf("AWS configuration: %w", err)
	}
	return cfg, nil
}

var gatewayHost = regexp.MustCompile(`\.execute-api\.([a-z0-9-]+)\.(amazonaws\.com|amazonaws\.com\.cn|api\.aws)$`)

func regionOf(endpoint string) string {
	u, err := ParseEndpoint(endpoint)
	if err != nil {
		return ""
	}
	if m := gatewayHost.FindStringSubmatch(u.Hostname()); m != nil {
		return m[1]
	}
	return ""
}

// Authorize signs the request.
func (s *Signing) Authorize(ctx context.Context, r *http.Request, body []byte) error {
	credentials, err := s.Credentials.Retrieve(ctx)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	return s.signer.SignHTTP(ctx, credentials, r, hex.EncodeToString(sum[:]), signingName, s.Region, s.Now())
}

// Describe says that requests are signed.
func (s *Signing) Describe() string {
	if s.Profile != "" {
		return "signed with profile " + s.Profile + " for " + s.Region
	}
	return "signed with the AWS credentials found, for " + s.Region
}

// Bearer is a token for an API with JWT authorisation.
type Bearer struct {
	token string
	file  string // read again for each request, because tokens expire
}

// NewBearer takes a token.
func NewBearer(token string) (*Bearer, error) {
	b := &Bearer{token: strings.TrimSpace(token)}
	return b, checkToken(b.token)
}

// NewBearerFile takes a file with a token in it.
func NewBearerFile(path string) (*Bearer, error) {
	b := &Bearer{file: path}
	_, err := b.current()
	return b, err
}

func (b *Bearer) current() (string, error) {
	if b.file == "" {
		return b.token, nil
	}
	text, err := os.ReadFile(b.file)
	if err != nil {
		return "", fmt.Errorf("token file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if err := checkToken(token); err != nil {
		return "", fmt.Errorf("%s: %w", b.file, err)
	}
	return token, nil
}

// checkToken applies RFC 6750's alphabet. The error does not show the token.
func checkToken(token string) error {
	if token == "" {
		return errors.New("the token is empty")
	}
	for _, r := range token {
		if r <= ' ' || r > '~' {
			return errors.New("the token holds characters that no bearer token has")
		}
	}
	return nil
}

// Authorize adds the token.
func (b *Bearer) Authorize(_ context.Context, r *http.Request, _ []byte) error {
	token, err := b.current()
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	return nil
}

// Describe says where the token is from.
func (b *Bearer) Describe() string {
	if b.file != "" {
		return "a bearer token from " + b.file
	}
	return "a bearer token from the environment"
}
