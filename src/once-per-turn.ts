let turn = 0;
const countTurn = oncePerTurn(() => {
  turn++;
});

/** Tells turns of the event loop apart: those of one turn are told the same number. */
export function currentTurn(): number {
  countTurn();
  return turn;
}

/** Has work done when the present turn of the event loop is over, once however often it is asked for until then. */
export function oncePerTurn(work: () => void): () => void {
  let isSet = false;

  function begin(): void {
    isSet = false;
    work();
  }

  return () => {
    if (!isSet) {
      isSet = true;
      setImmediate(begin);
    }
  };
}
