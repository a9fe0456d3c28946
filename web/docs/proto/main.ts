import "../../common/tokens.css";
import "../../common/base.css";
import "../styles/top.css";
import "./proto.css";
import { applyTheme } from "../../common/theme.js";

applyTheme();
