/** Makes something once for each key, when it is first asked for, and answers the same from then on. The keys must be few. */
export function oncePer<Key, Made extends object | string>(
  make: (key: Key) => Made,
): (key: Key) => Made {
  const all = new Map<Key, Made>();
  return (key) => {
    let made = all.get(key);
    if (made === undefined) {
      made = make(key);
      all.set(key, made);
    }
    return made;
  };
}
