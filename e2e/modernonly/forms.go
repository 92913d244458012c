package main

// defaults is a form whose fields have defaults (SEP-1034).
const defaults = `{"type":"object","properties":{
"name":{"type":"string","description":"User name","default":"John Doe"},
"age":{"type":"integer","description":"User age","default":30},
"score":{"type":"number","description":"User score","default":95.5},
"status":{"type":"string","description":"User status","enum":["active","inactive","pending"],"default":"active"},
"verified":{"type":"boolean","description":"Verification status","default":true}}}`

// enums is a form with every way to choose from a list (SEP-1330).
const enums = `{"type":"object","properties":{
"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},
"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
"untitledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","enum":["option1","option2","option3"]}},
"titledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"anyOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]}}}}`
