/** Writes messages as REST returns them. */
export const restJson = { useProtoFieldName: true, alwaysEmitImplicit: true } as const;
