-- Puts rows into a table that changes, new keys and now and then known ones:
--
--     wrk -t1 -c64 -d10s --latency -s tests/load/rows.lua http://127.0.0.1:8080/models/NAME/rows -- DIM [ROWS [FORM [RATE]]]
--
-- ROWS: of each request, 1 by default. FORM: json, the default; lines, JSON lines; binary, a NumPy file beside JSON lines.
-- RATE: rows/s of each thread, which has one connection then; as many as possible by default.
-- Rows have the attributes of `kindred synth --attributes`. Ends with one line for scripts: "result", rows/s, p50 and p99 in
-- ms, errors.

local ffi = require("ffi")

-- Making a request takes time that wrk measures, so vectors are made before and used again.
local VECTORS = 64

ffi.cdef("typedef struct { long s, ns; } kindred_time; int clock_gettime(int, kindred_time *);")

-- Milliseconds of a clock that never goes back.
local function now()
   local time = ffi.new("kindred_time")
   ffi.C.clock_gettime(1, time)
   return tonumber(time.s) * 1e3 + tonumber(time.ns) / 1e6
end

-- Milliseconds until the next request; wrk calls it before each.
function delay()
   due = due + rows / rate * 1e3
   return math.max(0, math.floor(due - now() + 0.5))
end

local threads = {}

function setup(thread)
   threads[#threads + 1] = thread
   thread:set("number", #threads)
end

local form, vectors, made, head

local function npy_head(count, dim)
   local text = ("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }"):format(count, dim)
   local padded = text .. (" "):rep(63 - (10 + #text) % 64) .. "\n"
   return "\147NUMPY\1\0" .. string.char(#padded % 256, math.floor(#padded / 256)) .. padded
end

function init(arguments)
   local dim = tonumber(arguments[1])
   rows, form = tonumber(arguments[2] or 1), arguments[3] or "json"
   rate, due = tonumber(arguments[4]), now()
   if not rate then delay = nil end
   math.randomseed(number)
   vectors, made = {}, 0
   for index = 1, VECTORS do
      local numbers = ffi.new("float[?]", dim)
      local texts = {}
      for place = 0, dim - 1 do
         numbers[place] = math.random() - 0.5
         texts[place + 1] = ("%.6f"):format(numbers[place])
      end
      vectors[index] = { text = table.concat(texts, ","), bytes = ffi.string(numbers, 4 * dim) }
   end
   head = npy_head(rows, dim)
end

local function row(vector)
   made = made + 1
   -- One in ten replaces a row.
   local key = made % 10 == 0 and math.random(made) or made
   local of_vector = form == "binary" and "" or ('"vector":[%s],'):format(vector.text)
   return ('{"key":"t%dk%d",%s"attributes":{"a":%d}}'):format(number, key, of_vector, made % 100)
end

local BOUNDARY = "b0123456789"

function request()
   local lines, bytes = {}, {}
   for index = 1, rows do
      local vector = vectors[math.random(VECTORS)]
      lines[index], bytes[index] = row(vector), vector.bytes
   end
   local path = wrk.path
   if form == "json" then
      local body = '{"rows":[' .. table.concat(lines, ",") .. '],"on_error":"skip"}'
      return wrk.format("POST", path, { ["Content-Type"] = "application/json" }, body)
   end
   local body, path = table.concat(lines, "\n"), path .. "?on_error=skip"
   if form == "lines" then
      return wrk.format("POST", path, { ["Content-Type"] = "application/x-ndjson" }, body)
   end
   local part = "--" .. BOUNDARY .. "\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n"
   local both = part:format("rows") .. body .. "\r\n" .. part:format("vectors") .. head
      .. table.concat(bytes) .. "\r\n--" .. BOUNDARY .. "--\r\n"
   local declared = "multipart/form-data; boundary=" .. BOUNDARY
   return wrk.format("POST", path, { ["Content-Type"] = declared }, both)
end

function done(summary, latency)
   local errors = summary.errors
   local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
   local rate = summary.requests * threads[1]:get("rows") / summary.duration * 1e6
   print(("result %.0f %.3f %.3f %d"):format(rate, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, failed))
end
