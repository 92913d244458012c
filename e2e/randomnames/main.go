// Command randomnames is a server whose tool, prompt and resources have the names that
// its flags say, so that nothing in front of it can know them. All three do what their
// plan says ([parsePlan]), and answer who called and what came back to each question:
//
//	tools/call      NAME or NAME-2, arguments {tag, plan}
//	prompts/get     NAME, arguments {tag, plan}
//	resources/read  NAME://TAG/PLAN
//
// The answer is an object {tag, name, pid, answers}, as structuredContent and as the text
// of the content. It serves one era only, over stdio or HTTP.
package main

import (
	"flag"
	"log"
	"net/http"
	"os"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("randomnames: ")
	name := flag.String("name", "", "the `name` of the tool and the prompt, and the scheme of the resources")
	era := flag.String("era", "legacy", "legacy (up to 2025-11-25) or modern (2026-07-28)")
	addr := flag.String("http", "", "listen at this `address` instead of standard input")
	barrier := flag.String("barrier", "", "the `address` that the step barrier connects to")
	apart := flag.Bool("apart", false, "ask on the session's own stream, as servers do that do not say which call a question is for")
	flag.Parse()
	if *name == "" || *era != "legacy" && *era != "modern" {
		flag.Usage()
		os.Exit(2)
	}
	f := &fixture{name: *name, barrier: *barrier, apart: *apart}
	if err := serve(f, *era, *addr); err != nil {
		log.Fatal(err)
	}
}

func serve(f *fixture, era, addr string) error {
	switch {
	case era == "modern" && addr != "":
		return http.ListenAndServe(addr, newModern(f))
	case era == "modern":
		return newModern(f).ServeStdio(os.Stdin, os.Stdout)
	case addr != "":
		return http.ListenAndServe(addr, newLegacyHTTP(f))
	}
	return serveLegacyStdio(f, os.Stdin, os.Stdout)
}
