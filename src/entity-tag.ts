/** A strong entity tag of visible characters, or the star that stands for whatever there is. */
export const entityTagPattern = /^(?:\*|"([!#-~]+)")$/;
