use std::sync::Arc; use std::time::Instant; use model_store::*; use cpu_core::*;
fn main(){ let reps: usize=std::env::var("REPS").ok().and_then(|x|x.parse().ok()).unwrap_or(1); let a:Vec<String>=std::env::args().collect(); let model=Arc::new(ModelStore::open(a[1].as_ref()).unwrap()); let n:usize=a[2].parse().unwrap(); let k:usize=a[3].parse().unwrap();
 let t=model.table(); let queries:Vec<Query>=(0..n).map(|i|{let row=Row(((i*6151+17)%model.rows()) as u32); Query::new(&t,QueryVector::Row(row),k,Filter::excluding(vec![row])).unwrap()}).collect();
 let check = a.get(4).is_some();
 let mut full=FullScanEngine::new(model.clone(),0).unwrap();
 let want = if check { full.search(&queries.iter().collect()).unwrap() } else {vec![]};
 for set in InstructionSet::available(){ 
  if let Ok(only)=std::env::var("SET") { if set.to_string()!=only {continue;} }
  let mut e=CpuEngine::new(model.clone(),Options{instructions:Some(set),keep_in:std::env::var_os("CACHE").map(Into::into),report:Some(Box::new(|r|eprintln!("{r}"))),..Default::default()}).unwrap(); e.wait_for_tables();
  let mut got=vec![]; let mut ts: Vec<f64>=vec![];
  for _ in 1..reps { for q in &queries { e.search(&std::iter::once(q).collect()).unwrap(); } }
  for q in &queries { let s=Instant::now(); got.extend(e.search(&std::iter::once(q).collect()).unwrap()); ts.push(s.elapsed().as_secs_f64()); }
  ts.sort_by(f64::total_cmp);
  println!("{set}: one median {:.3} ms p90 {:.3} max {:.3}  {:?}", ts[n/2]*1e3, ts[n*9/10]*1e3, ts[n-1]*1e3, e.counters());
  let mut bs=vec![]; let mut b=vec![]; for _ in 0..std::env::var("BR").map_or(5,|x|x.parse::<usize>().unwrap()) { let s=Instant::now(); b=e.search(&queries.iter().collect()).unwrap(); bs.push(s.elapsed().as_secs_f64()); } bs.sort_by(f64::total_cmp);
  println!("   batch {:.3} ms = {:.1}/s", bs[bs.len()/2]*1e3, n as f64/bs[bs.len()/2]);
  assert!(b==got); if check { assert!(got==want, "wrong"); println!("   same as full scan"); }
 }
}
