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
--              16 words), texts (1,024 of them), expand (a text of 8 words); and of a model of `kindred synth
--              --attributes`, one of 64 filters that so many rows meet: half, tenth, hundredth, thousandth
-- With `problems`, answers with a status of 300 and above are shown as they come, on standard error.
-- Ends with one line for scripts: "result", requests/s, p50 and p99 in ms, errors.

-- Whatever wrk's threads do is in the time that it measures, and making a request with 50 words takes them as long as
-- the service takes to answer it. So all requests are made before the first thread starts, and put into a file, from
-- which threads read each of them once.
local REQUESTS, LARGE_REQUESTS = 50000, 100
-- Threads begin at different places of the file, whose first lines say where they are.
local PLACES, PLACE = 64, "%015d\n"
local threads, path_of_requests = 0, nil

function setup(thread)
   threads = threads + 1
   path_of_requests = path_of_requests or os.tmpname()
   -- Globals of the thread.
   thread:set("number", threads)
   thread:set("prepared", path_of_requests)
end

local function encoded(word)
   return (word:gsub("[^%w%-._~]", function(c) return ("%%%02X"):format(c:byte()) end))
end

local function quoted(word)
   return '"' .. word:gsub('[%c"\\]', function(c) return ("\\u%04x"):format(c:byte()) end) .. '"'
end

local words, kind, rare, total, left, left_rare
local file, requests, next_one = nil, {}, 0

-- wrk reads a header field and body only for a function named `response`, which takes time.
local function show_problem(status, _, body)
   if status >= 300 then io.stderr:write(status, " ", body, "\n") end
end

-- The line after a random place in the file of words; the first one after the last.
local function random_word()
   local before = words:find("\n", math.random(#words), true)
   if not before or before == #words then before = 0 end
   local after = words:find("\n", before + 1, true) or #words + 1
   return (words:sub(before + 1, after - 1):gsub("\r$", ""))
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

local function filtered(width)
   local first = math.random(0, 63) * 7
   return neighbors(("&filter=a+%%3E%%3D+%d+AND+a+%%3C+%d"):format(first, first + width))
end

local RARE = {
   half = function() return filtered(500) end,
   tenth = function() return filtered(100) end,
   hundredth = function() return filtered(10) end,
   thousandth = function() return filtered(1) end,
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
      -- The share is exact, at random places.
      local is_rare = math.random(left) <= left_rare
      left, left_rare = left - 1, left_rare - (is_rare and 1 or 0)
      return is_rare and make_rare() or neighbors("")
   end
   if kind == "post" then return post("/nearest", '"word": ' .. quoted(random_word())) end
   if math.random(50) == 1 then return many() end
   return MIXED[math.random(#MIXED)]()
end

local function prepare()
   local places = {}
   file = assert(io.open(prepared, "wb"))
   file:write(PLACE:format(0):rep(PLACES))
   for i = 0, total - 1 do
      local place = math.floor(i * PLACES / total) + 1
      places[place] = places[place] or file:seek()
      local request = make()
      file:write(#request, "\n", request)
   end
   file:seek("set", 0)
   for place = 1, PLACES do file:write(PLACE:format(places[place])) end
   file:close()
   words = nil
   collectgarbage()
end

-- wrk starts its threads one after the other, and counts what the first ones asked before the last one was ready as if
-- it had been asked in its time. So only the first one, before which nothing runs, takes long.
function init(args)
   local path = assert(args[1], "which file of words? wrk ... URL -- words.txt [get|post|mixed]")
   kind = args[2] or "get"
   if args[3] == "problems" then response = show_problem end
   local percent
   rare, percent = kind:match("^(%w[%w_]*):([%d.]+)$")
   assert(rare or kind == "get" or kind == "post" or kind == "mixed", "KIND is get, post, mixed or NAME:PERCENT")
   total = rare == "texts" and LARGE_REQUESTS or REQUESTS
   left, left_rare = total, math.floor(total * (tonumber(percent) or 0) / 100 + 0.5)
   if number == 1 then
      local all = assert(io.open(path, "rb"))
      words = all:read("*a")
      all:close()
      math.randomseed(1)
      prepare()
   end
   file = assert(io.open(prepared, "rb"))
   file:seek("set", (number - 1) * 37 % PLACES * #PLACE:format(0))
   file:seek("set", tonumber(file:read()))
end

local function read_request()
   local length = file:read()
   if not length then
      file:seek("set", PLACES * #PLACE:format(0))
      length = file:read()
   end
   return file:read(tonumber(length))
end

function request()
   next_one = next_one % total + 1
   local request = requests[next_one]
   if not request then
      request = read_request()
      requests[next_one] = request
   end
   return request
end

function done(summary, latency)
   os.remove(path_of_requests)
   local e = summary.errors
   io.write(("result %.0f %.3f %.3f %d\n"):format(
      summary.requests / summary.duration * 1e6,
      latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
      e.connect + e.read + e.write + e.status + e.timeout))
end
