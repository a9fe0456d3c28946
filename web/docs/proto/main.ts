import "../../console/styles/tokens.css";
import "../../console/styles/base.css";
import "../styles/top.css";
import "./proto.css";
import { applyTheme } from "../../console/theme.js";

applyTheme();
