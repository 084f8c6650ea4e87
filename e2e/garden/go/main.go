// A server that answers every request with what net/http read of it, as JSON in the header X-Read.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
)

type reading struct {
	Method  string `json:"method"`
	Target  string `json:"target"`
	Host    string `json:"host"`
	Framing string `json:"framing"`
	Length  int    `json:"length"`
	SHA256  string `json:"sha256"`
	// Served counts the requests that reached this process: what a proxy smuggled through would be one too many.
	Served int64 `json:"served"`
}

var served atomic.Int64

func answer(writer http.ResponseWriter, request *http.Request) {
	count := served.Add(1)
	body, err := io.ReadAll(request.Body)
	if err != nil {
		http.Error(writer, err.Error(), http.StatusBadRequest)
		return
	}
	framing := "length"
	switch {
	case len(request.TransferEncoding) > 0:
		framing = "chunked"
	case request.ContentLength == 0:
		framing = "empty"
	}
	digest := sha256.Sum256(body)
	read, err := json.Marshal(reading{
		Method: request.Method, Target: request.RequestURI, Host: request.Host, Framing: framing,
		Length: len(body), SHA256: hex.EncodeToString(digest[:]), Served: count,
	})
	if err != nil {
		http.Error(writer, err.Error(), http.StatusInternalServerError)
		return
	}
	writer.Header().Set("X-Read", string(read))
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	server := &http.Server{Handler: http.HandlerFunc(answer), MaxHeaderBytes: 1 << 17, ErrorLog: log.New(io.Discard, "", 0)}
	log.Fatal(server.Serve(listener))
}
