-- Asks about random words of a file with one word a line (a model's words.txt):
--
--     wrk -t8 -c256 -d10s --latency -s tests/load/requests.lua http://127.0.0.1:8080 -- words.txt [KIND [problems]]
--
-- KIND: get    GET /nearest?word=…, the default
--       post   POST /nearest {"word": …}
--       mixed  nearest and analogies, GET and POST, k from 1 to 100, excluded words, and now and then 2 to 64
--              queries at once
--       NAME:PERCENT   get, with this share of another request: 3cosmul, pairdirection, analogy, rank (of 10 words),
--              vocab_limit (of 200,000), k100, exclude (50 words), min_score or max_score (of 0.5), classify (a text of
--              16 words), texts (1,024 of them), expand (a text of 8 words)
-- With `problems`, answers with a status of 300 and above are shown as they come, on standard error.
-- Ends with one line for scripts: "result", requests/s, p50 and p99 in ms, errors.

-- A request costs little the second time: making one must not cost more than answering it.
local REQUESTS, LARGE_REQUESTS = 50000, 100
local threads = 0

function setup(thread)
   threads = threads + 1
   thread:set("seed", threads)
end

local function encoded(word)
   return (word:gsub("[^%w%-._~]", function(c) return ("%%%02X"):format(c:byte()) end))
end

local function quoted(word)
   return '"' .. word:gsub('[%c"\\]', function(c) return ("\\u%04x"):format(c:byte()) end) .. '"'
end

local words, bytes, kind, rare, percent
local requests, next_one = {}, 0

-- wrk reads a header field and body only for a function named `response`, which takes time.
local function show_problem(status, _, body)
   if status >= 300 then io.stderr:write(status, " ", body, "\n") end
end

-- Nothing here may take long, such as reading the file: wrk starts its threads one after the other, and
-- counts what the first ones asked before the last one was ready as if it had been asked in its time.
function init(args)
   local path = assert(args[1], "which file of words? wrk ... URL -- words.txt [get|post|mixed]")
   kind = args[2] or "get"
   if args[3] == "problems" then response = show_problem end
   rare, percent = kind:match("^(%w[%w_]*):([%d.]+)$")
   assert(rare or kind == "get" or kind == "post" or kind == "mixed", "KIND is get, post, mixed or NAME:PERCENT")
   percent = tonumber(percent)
   words = assert(io.open(path))
   bytes = words:seek("end")
   math.randomseed(seed)
end

-- The line after a random place in the file; the first one after the last.
local function random_word()
   words:seek("set", math.random(0, bytes - 1))
   words:read()
   local word = words:read()
   if word then return word end
   words:seek("set", 0)
   return words:read()
end

-- What wrk's option -H says, and what the body is.
local function json_headers()
   local headers = { ["Content-Type"] = "application/json" }
   for name, value in pairs(wrk.headers) do headers[name] = value end
   return headers
end

local function get(path, parameters)
   return wrk.format("GET", path .. "?" .. parameters)
end

local function post(path, fields)
   return wrk.format("POST", path, json_headers(), "{" .. fields .. "}")
end

local function random_k()
   local k = { 1, 5, 10, 10, 10, 10, 20, 50, 100 }
   return k[math.random(#k)]
end

local function positive_and_negative()
   local form = '"positive": [%s, %s], "negative": [%s]'
   return form:format(quoted(random_word()), quoted(random_word()), quoted(random_word()))
end

local MIXED = {
   function() return get("/nearest", ("word=%s&k=%d"):format(encoded(random_word()), random_k())) end,
   function() return get("/nearest", ("word=%s&exclude=%s"):format(encoded(random_word()), encoded(random_word()))) end,
   function() return get("/analogy", ("positive=%s&negative=%s"):format(encoded(random_word()), encoded(random_word()))) end,
   function() return post("/nearest", ('"word": %s, "k": %d'):format(quoted(random_word()), random_k())) end,
   function() return post("/analogy", positive_and_negative()) end,
}

local function analogy(method)
   local words = { encoded(random_word()), encoded(random_word()), encoded(random_word()) }
   return get("/analogy", ("positive=%s&positive=%s&negative=%s&method=%s"):format(words[1], words[2], words[3], method))
end

local function neighbors(more)
   return get("/nearest", "word=" .. encoded(random_word()) .. more)
end

local function each(count, form)
   local all = {}
   for i = 1, count do all[i] = form() end
   return all
end

local function text(words)
   return quoted(table.concat(each(words or 16, random_word), " "))
end

local RARE = {
   ["3cosmul"] = function() return analogy("3cosmul") end,
   pairdirection = function() return analogy("pairdirection") end,
   analogy = function() return analogy("3cosadd") end,
   rank = function()
      local ranked = table.concat(each(10, function() return quoted(random_word()) end), ",")
      return post("/rank", ('"word": %s, "words": [%s]'):format(quoted(random_word()), ranked))
   end,
   vocab_limit = function() return neighbors("&vocab_limit=200000") end,
   k100 = function() return neighbors("&k=100") end,
   exclude = function()
      return neighbors(table.concat(each(50, function() return "&exclude=" .. encoded(random_word()) end)))
   end,
   min_score = function() return neighbors("&min_score=0.5") end,
   max_score = function() return neighbors("&max_score=0.5") end,
   classify = function() return post("/classify", '"text": ' .. text()) end,
   expand = function() return post("/expand", '"text": ' .. text(8)) end,
   texts = function() return post("/classify", '"texts": [' .. table.concat(each(1024, text), ",") .. "]") end,
}

local function many()
   local queries = {}
   for i = 1, 2 ^ math.random(1, 6) do
      queries[i] = ('{"word": %s}'):format(quoted(random_word()))
   end
   return post("/nearest", '"k": 5, "queries": [' .. table.concat(queries, ",") .. "]")
end

local function make()
   if kind == "get" then return get("/nearest", "word=" .. encoded(random_word())) end
   if rare then
      local make_rare = assert(RARE[rare], "there is no request " .. rare)
      return math.random() * 100 < percent and make_rare() or neighbors("")
   end
   if kind == "post" then return post("/nearest", '"word": ' .. quoted(random_word())) end
   if math.random(50) == 1 then return many() end
   return MIXED[math.random(#MIXED)]()
end

function request()
   next_one = next_one % (rare == "texts" and LARGE_REQUESTS or REQUESTS) + 1
   local request = requests[next_one]
   if not request then
      request = make()
      requests[next_one] = request
   end
   return request
end

function done(summary, latency)
   local e = summary.errors
   io.write(("result %.0f %.3f %.3f %d\n"):format(
      summary.requests / summary.duration * 1e6,
      latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
      e.connect + e.read + e.write + e.status + e.timeout))
end
