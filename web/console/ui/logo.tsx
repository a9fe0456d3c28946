import picture from "../../common/latchkey.svg";

export function Logo() {
  return (
    <span className="logo">
      <img src={picture} alt="" width="28" height="28" />
      Latchkey
    </span>
  );
}
