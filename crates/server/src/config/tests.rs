//! Tests of the layers of settings, of invalid settings, and of what else names every setting.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::Args;
use toml::Value;

use super::settings::{DEFAULTS, SETTINGS};
use super::*;
use kindred::device::{Device, Gpus};

fn load(flags: &ServeFlags, environment: &[(&str, &str)]) -> Result<Config, String> {
    let environment = environment.iter().map(|&(key, value)| (key.into(), value.into()));
    Config::from_layers(flags, environment).map_err(|e| e.to_string())
}

fn file(content: &str) -> (tempfile::NamedTempFile, ServeFlags) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), content).unwrap();
    let flags = ServeFlags { config: Some(file.path().into()), ..Default::default() };
    (file, flags)
}

fn declared() -> toml::Table {
    toml::from_str(DEFAULTS).unwrap()
}

#[test]
fn the_file_describes_every_setting_and_has_its_default() {
    let file = include_str!("../../../../config/kindred.toml");
    assert_eq!(toml::from_str::<toml::Table>(file).unwrap(), declared());
    for setting in SETTINGS {
        let (before, _) = file.split_once(&format!("\n{} = ", setting.name)).unwrap();
        let paragraph = before.rsplit("\n\n").next().unwrap();
        assert!(paragraph.starts_with("# "), "{} has no description", setting.name);
    }
}

#[test]
fn the_help_has_every_setting_with_its_default() {
    let serve = ServeFlags::augment_args(clap::Command::new("serve"));
    for (key, default) in declared() {
        let flag = serve.get_arguments().find(|flag| flag.get_id() == key.as_str()).unwrap();
        assert_eq!(flag.get_long(), Some(key.replace('_', "-").as_str()));
        let help = flag.get_help().unwrap().to_string();
        let shown = match default {
            Value::String(text) if text.is_empty() => String::new(),
            Value::String(text) => format!("{text}]"),
            Value::Array(values) if values.is_empty() => "none]".to_owned(),
            Value::Array(values) => {
                values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",") + "]"
            }
            Value::Integer(number) => format!("{number}]"),
            Value::Float(number) => format!("{number}]"),
            Value::Boolean(switch) => format!("{switch}]"),
            other => panic!("{key}: {other:?}"),
        };
        assert!(help.contains(&format!(" [default: {shown}")), "{key}: {help}");
        assert!(flag.get_help_heading().is_some(), "{key}");
    }
}

#[test]
fn the_schema_of_the_chart_has_every_setting_with_its_kind_and_its_range() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/helm/kindred");
    let read = |name: &str| std::fs::read_to_string(format!("{folder}/{name}")).unwrap();
    let (schema, values) = (read("values.schema.json"), read("values.yaml"));
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let taken = schema["properties"]["config"]["properties"].as_object().unwrap();
    // The others depend on other values of the chart.
    let (_, others) = values.split_once("those that depend on other values: ").unwrap();
    let (others, _) = others.split_once(".\n").unwrap();
    let others = others.split(|c: char| c != '_' && !c.is_ascii_lowercase());
    let others: BTreeSet<&str> = others.filter(|name| !name.is_empty()).collect();
    let names: BTreeSet<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
    assert!(others.is_subset(&names), "{others:?}");
    let expected: BTreeSet<&str> = names.difference(&others).copied().collect();
    assert_eq!(taken.keys().map(String::as_str).collect::<BTreeSet<_>>(), expected);
    let declared = declared();
    for (key, schema) in taken {
        let is_valid = |value: &dyn std::fmt::Display| {
            let (_file, flags) = file(&format!("{key} = {value}"));
            load(&flags, &[]).is_ok()
        };
        let kind = match &declared[key] {
            Value::Integer(_) => {
                let least = schema["minimum"].as_i64().expect(key);
                assert!(is_valid(&least) && !is_valid(&(least - 1)), "{key} from {least}");
                match schema["maximum"].as_i64() {
                    Some(most) => {
                        assert!(is_valid(&most) && !is_valid(&(most + 1)), "{key} to {most}");
                    }
                    None => assert!(is_valid(&u32::MAX), "{key} has a maximum"),
                }
                "integer"
            }
            Value::Float(_) => {
                let bound = |name: &str| schema[name].as_f64().expect(key);
                let (least, most) = (bound("minimum"), bound("maximum"));
                assert!(is_valid(&least) && !is_valid(&(least - 0.01)), "{key} from {least}");
                assert!(is_valid(&most) && !is_valid(&(most + 0.01)), "{key} to {most}");
                "number"
            }
            Value::Boolean(_) => "boolean",
            Value::Array(_) => "array",
            _ => match schema["enum"].as_array() {
                Some(values) => {
                    assert!(values.iter().all(|value| is_valid(value)), "{key}: {values:?}");
                    assert!(!is_valid(&"'neither'"), "{key} is no enumeration");
                    continue;
                }
                None => "string",
            },
        };
        let kinds = &schema["type"];
        let is_listed = kinds.as_array().is_some_and(|kinds| kinds.iter().any(|one| one == kind));
        assert!(kinds == kind || is_listed, "{key}: {kinds} is not {kind}");
    }
}

#[test]
fn the_declaration_gives_the_documented_defaults() {
    let config = load(&ServeFlags::default(), &[]).unwrap();
    assert_eq!(config.listen, "127.0.0.1:8080");
    assert_eq!((config.device.clone(), config.log_format), (Device::Auto, LogFormat::Text));
    assert_eq!((config.queue_capacity_queries, config.max_batch_queries), (8192, 1024));
    assert_eq!((config.request_timeout_ms, config.drain_timeout_ms), (30_000, 30_000));
    assert_eq!((config.sources(), config.name), (vec![ModelSource::BUILT_IN], String::new()));
    assert_eq!((config.engine_max_restarts, config.engine_hang_timeout_ms), (5, 120_000));
}

#[test]
fn flags_win_over_environment_over_file_over_defaults() {
    let (_file, mut flags) = file("listen = '1.1.1.1:1'\nname = 'file'\nthreads = 1\n");
    let environment = [("KINDRED_NAME", "env"), ("KINDRED_THREADS", "2"), ("PATH", "/bin")];
    flags.threads = Some(3);
    let config = load(&flags, &environment).unwrap();
    assert_eq!((config.listen.as_str(), config.name.as_str()), ("1.1.1.1:1", "env"));
    assert_eq!((config.threads, config.max_batch_queries), (3, 1024));
}

#[test]
fn lists_are_arrays_in_the_file_and_have_commas_elsewhere() {
    let lists = |config: Config| (config.cors_origins, config.public_routes);
    let of = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect::<Vec<_>>();
    let public = [
        "/",
        "/explorer/*",
        "/docs",
        "/docs/*",
        "/openapi.yaml",
        "/health/live",
        "/health/ready",
        "/metrics",
    ];
    let defaults = load(&ServeFlags::default(), &[]).unwrap();
    assert_eq!(lists(defaults), (vec![], of(&public)));
    let (_file, mut flags) = file("cors_origins = ['https://a', 'https://b']\npublic_routes = []");
    assert_eq!(lists(load(&flags, &[]).unwrap()), (of(&["https://a", "https://b"]), vec![]));
    let environment =
        [("KINDRED_CORS_ORIGINS", "https://c, https://d"), ("KINDRED_PUBLIC_ROUTES", "/1")];
    let found = lists(load(&flags, &environment).unwrap());
    assert_eq!(found, (of(&["https://c", "https://d"]), of(&["/1"])));
    let found = lists(load(&flags, &[("KINDRED_CORS_ORIGINS", "")]).unwrap());
    assert_eq!(found, (vec![], vec![]));
    flags.cors_origins = of(&["https://e"]);
    let config = load(&flags, &environment).unwrap();
    assert_eq!((config.cors_origins, config.name), (of(&["https://e"]), String::new()));
}

#[test]
fn placements_are_for_all_models_or_for_one() {
    let (_file, mut flags) = file(
        "model = ['/m/a', 'b=/m/x']\nplacement = ['replicate', 'b=shard']\ndevice = 'cuda:0,2'",
    );
    let placed = |config: &Config| ["a", "b"].map(|name| config.placement_of(name));
    let config = load(&flags, &[]).unwrap();
    assert_eq!(placed(&config), [Placement::Replicate, Placement::Shard]);
    assert_eq!(config.device, Device::Cuda(Gpus::These(vec![0, 2])));
    let environment = [("KINDRED_PLACEMENT", "a=shard"), ("KINDRED_DEVICE", "cuda:1,3")];
    let config = load(&flags, &environment).unwrap();
    assert_eq!(placed(&config), [Placement::Shard, Placement::Auto]);
    assert_eq!(config.device, Device::Cuda(Gpus::These(vec![1, 3])));
    flags.placement = vec!["b=replicate".into(), "shard".into()];
    assert_eq!(
        placed(&load(&flags, &environment).unwrap()),
        [Placement::Shard, Placement::Replicate]
    );
    flags.placement = vec!["c=shard".into()];
    assert!(load(&flags, &[]).unwrap_err().contains("served models"));
    flags.placement = vec!["split".into()];
    assert!(load(&flags, &[]).unwrap_err().contains("replicate or shard"));
}

#[test]
fn models_are_one_or_several_of_different_names() {
    let models = |flags: &ServeFlags, environment: &[(&str, &str)]| {
        let config = load(flags, environment)?;
        Ok::<_, String>(config.sources().iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    let (_file, flags) = file("model = ['/m/a', 'b=/m/x']\nname = 'first'");
    assert_eq!(models(&flags, &[]).unwrap(), ["first=/m/a", "b=/m/x"]);
    let one = [("KINDRED_MODEL", "/m/c")];
    assert_eq!(models(&ServeFlags::default(), &one).unwrap(), ["/m/c"]);
    let two = [("KINDRED_MODEL", "/m/c, d=/m/d")];
    assert_eq!(models(&flags, &two).unwrap(), ["first=/m/c", "d=/m/d"]);
    let flags = ServeFlags { model: vec!["e=".into()], ..Default::default() };
    assert!(models(&flags, &[]).unwrap_err().contains("NAME=DIR"));
    let flags = ServeFlags { model: vec!["/m/a".into(), "a=/n".into()], ..Default::default() };
    let said = models(&flags, &[]).unwrap_err();
    assert!(said.contains("`/m/a` and `a=/n`") && said.contains("`a`;"), "{said}");
}

#[test]
fn the_environment_can_name_the_file() {
    let (file, _) = file("name = 'from the file'");
    let path = file.path().to_str().unwrap();
    let config = load(&ServeFlags::default(), &[("KINDRED_CONFIG", path)]).unwrap();
    assert_eq!(config.name, "from the file");
}

#[test]
fn numbers_may_be_names() {
    let config = load(&ServeFlags::default(), &[("KINDRED_NAME", "300")]).unwrap();
    assert_eq!(config.name, "300");
}

#[test]
fn unknown_keys_are_errors_that_name_them() {
    let (file, flags) = file("lisen = '1.1.1.1:1'");
    let said = load(&flags, &[]).unwrap_err();
    let path = file.path().to_str().unwrap();
    assert!(said.contains("`lisen`") && said.contains(path) && said.contains("listen"), "{said}");
    assert!(said.contains("did you mean listen?"), "{said}");
    for (variable, meant) in [
        ("KINDRED_LISEN", "KINDRED_LISTEN"),
        ("KINDRED_LOGLEVEL", "KINDRED_LOG_LEVEL"),
        ("KINDRED_APIKEY", "KINDRED_API_KEY"),
        ("KINDRED_CONFIGG", "KINDRED_CONFIG"),
    ] {
        let said = load(&ServeFlags::default(), &[(variable, "x")]).unwrap_err();
        let expected = format!("did you mean {meant}?");
        assert!(said.contains(variable) && said.contains(&expected), "{said}");
    }
}

#[test]
fn values_of_another_kind_are_not_converted() {
    for (content, expected) in [
        ("threads = 3.7", "the setting `threads` is 3.7; it must be a whole number"),
        ("threads = true", "the setting `threads` is true; it must be a whole number"),
        ("request_timeout_ms = 1e3", "it must be a whole number"),
        ("request_timeout_ms = '30s'", "the setting `request_timeout_ms` is `30s`"),
        ("keep_tables = 2", "the setting `keep_tables` is 2; it must be true or false"),
        ("keep_tables = 'nope'", "the setting `keep_tables` is `nope`"),
        ("access_log_query = 0.0", "it must be true or false"),
        ("traces_sample_ratio = true", "it must be a number"),
        ("traces_sample_ratio = '1%'", "the setting `traces_sample_ratio` is `1%`"),
        ("threads = -1", "the setting `threads` is -1; it must be a whole number of at least 0"),
        ("threads = '-1'", "the setting `threads` is `-1`; it must be a whole number of at least"),
        ("cors_origins = 'https://a.b'", "is `https://a.b`; it must be a list of texts, as in"),
        ("public_routes = [5]", "the setting `public_routes` is array; it must be a list of texts"),
        (
            "[server]\nthreads = 3",
            "unknown setting `server`; settings have no sections, so leave out `[server]`",
        ),
    ] {
        let (file, flags) = file(content);
        let said = load(&flags, &[]).unwrap_err();
        let path = file.path().to_str().unwrap();
        assert!(said.contains(expected) && said.contains(path), "{content}: {said}");
    }
    for (variable, value) in [
        ("KINDRED_THREADS", "3.7"),
        ("KINDRED_THREADS", "true"),
        ("KINDRED_THREADS", ""),
        ("KINDRED_KEEP_TABLES", "fasle"),
        ("KINDRED_KEEP_TABLES", "2"),
        ("KINDRED_TRACES_SAMPLE_RATIO", "true"),
    ] {
        let said = load(&ServeFlags::default(), &[(variable, value)]).unwrap_err();
        assert!(said.contains(variable) && said.contains(&format!("is `{value}`")), "{said}");
    }
    let (_file, flags) = file("keep_tables = 'off'\ntraces_sample_ratio = 1\nthreads = '3'");
    let config = load(&flags, &[("KINDRED_ACCESS_LOG_QUERY", "Yes")]).unwrap();
    assert!(!config.keep_tables && config.access_log_query && config.threads == 3);
}

#[test]
fn a_log_level_that_is_none_is_refused_wherever_it_is_from() {
    let expected = "setting `log_level`: `inf` is not a level";
    let (_file, from_file) = file("log_level = 'inf'");
    let flags = ServeFlags { log_level: Some("inf".into()), ..Default::default() };
    let from = [load(&from_file, &[]), load(&flags, &[])];
    for said in
        from.into_iter().chain([load(&ServeFlags::default(), &[("KINDRED_LOG_LEVEL", "inf")])])
    {
        let said = said.unwrap_err();
        assert!(said.contains(expected) && said.contains("did you mean info?"), "{said}");
    }
}

#[test]
fn what_an_orchestrator_sets_for_a_service_of_our_name_is_none_of_our_settings() {
    let links = [("KINDRED_SERVICE_HOST", "10.0.0.1"), ("KINDRED_PORT_8080_TCP", "tcp://x")];
    load(&ServeFlags::default(), &links).unwrap();
}

#[cfg(unix)]
#[test]
fn what_is_not_utf8_is_an_error_if_it_is_ours() {
    use std::os::unix::ffi::OsStringExt;
    let load = |name: &[u8], value: &[u8]| {
        let variable = [name, value].map(|bytes| OsString::from_vec(bytes.to_vec()));
        let environment = std::iter::once(variable.into());
        Config::from_layers(&ServeFlags::default(), environment).map_err(|e| e.to_string())
    };
    for (name, value, said) in [
        (&b"KINDRED_API_KEYS_FILE"[..], &b"/k\xff"[..], "KINDRED_API_KEYS_FILE: its value"),
        (b"KINDRED_CONFIG", b"\xff", "KINDRED_CONFIG: its value"),
        (b"KINDRED_API_KEYS_FIL\xff", b"/keys", "KINDRED_API_KEYS_FIL\u{fffd}: its name"),
    ] {
        let error = load(name, value).unwrap_err();
        assert!(error.contains(said) && error.contains("UTF-8"), "{error}");
    }
    for name in [&b"PATH"[..], b"\xffKINDRED_NAME", b"KINDRED_PORT\xff", b"KINDRED_SERVICE_HOST"] {
        assert!(load(name, b"\xff").is_ok(), "{}", name.escape_ascii());
    }
}

#[test]
fn what_commands_ask_with_is_none_of_our_settings() {
    load(&ServeFlags::default(), &[("KINDRED_API_KEY", "x"), ("KINDRED_URL", "x")]).unwrap();
}

#[test]
fn bad_values_are_errors_that_name_the_key() {
    for (content, key) in [
        ("threads = 'many'", "threads"),
        ("device = 'tpu'", "device"),
        ("queue_capacity_queries = 0", "queue_capacity_queries"),
        ("request_timeout_ms = -5", "request_timeout_ms"),
        ("idle_timeout_ms = 0", "idle_timeout_ms"),
        ("max_uri_bytes = 100000", "max_uri_bytes"),
        ("threads = 1025", "`threads`"),
        ("http_threads = 99999", "http_threads"),
        ("cors_origins = 5", "cors_origins"),
        ("model = {en = '/m'}", "it must be a text or a list of texts, for key `model`"),
        ("placement = 5", "it must be a text or a list of texts, for key `placement`"),
        ("head_precision = 'float8'", "use auto or float16 or float32 for key `head_precision`"),
        ("log_format = 'xml'", "`xml` is none of its values; use text or json"),
    ] {
        let (_file, flags) = file(content);
        let said = load(&flags, &[]).unwrap_err();
        assert!(said.contains(key), "{content}: {said}");
    }
    let said = load(&ServeFlags::default(), &[("KINDRED_THREADS", "many")]).unwrap_err();
    assert!(said.contains("threads"), "{said}");
    let (_file, flags) = file("listen 5");
    assert!(load(&flags, &[]).unwrap_err().contains("is not TOML"));
    let flags = ServeFlags { config: Some("/no/such/file".into()), ..Default::default() };
    assert!(load(&flags, &[]).unwrap_err().contains("/no/such/file"));
}

#[test]
fn ratios_and_limits_of_traces_are_checked() {
    for (content, said) in [
        ("traces_sample_ratio = 1.01", "from 0 to 1"),
        ("traces_sample_ratio = -0.5", "from 0 to 1"),
        ("traces_sample_ratio = nan", "from 0 to 1"),
        ("traces_asked_per_second = 1000001", "from 0 to 1000000"),
    ] {
        let (_file, flags) = file(content);
        let error = load(&flags, &[]).unwrap_err();
        assert!(error.contains(said) && error.contains("traces_"), "{content}: {error}");
    }
    let config = load(&ServeFlags::default(), &[("KINDRED_TRACES_SAMPLE_RATIO", "1")]).unwrap();
    assert_eq!(config.traces_sample_ratio, 1.0, "a whole number");
}

#[cfg(not(feature = "traces"))]
#[test]
fn a_build_without_traces_refuses_a_collector_and_says_how_to_build_one() {
    let error = load(&ServeFlags::default(), &[("KINDRED_TRACES_ENDPOINT", "http://a:1")]);
    let error = error.unwrap_err();
    assert!(error.contains("`traces_endpoint`") && error.contains("--features traces"), "{error}");
}
