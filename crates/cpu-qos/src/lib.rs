//! Quality of service of the calling thread: keep decode workers on the cores they deserve
